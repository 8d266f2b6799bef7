/*
 * time.cpp
 *		Between PostgreSQL's timestamptz and Unix microseconds.
 */
#include "postgres/time.h"

#include <cinttypes>
#include <cstdio>

#include "core/id.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* From 1970-01-01 to 2000-01-01 */
constexpr int64 postgres_epoch_us = int64{POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE} * USECS_PER_DAY;

/* Cuts a fraction that is 0, or the zeros it ends in down to milliseconds. */
void
append_fraction(char *text, size_t size, int64 us)
{
	size_t		length = strlen(text);

	if (us % 1000 != 0)
		snprintf(text + length, size - length, ".%06d", static_cast<int>(us));
	else if (us != 0)
		snprintf(text + length, size - length, ".%03d", static_cast<int>(us / 1000));
}

}  // namespace

TimeText
time_text(int64_t unix_us)
{
	TimeText	result;
	pg_tm		tm = {};
	fsec_t		fraction = 0;

	const int64	time = timestamptz_of(unix_us);

	if (TIMESTAMP_NOT_FINITE(time) || timestamp2tm(time, nullptr, &tm, &fraction, nullptr, nullptr) != 0)
	{
		strlcpy(result.text, unix_us < 0 ? "-infinity" : "infinity", sizeof(result.text));
		return result;
	}
	/* The year before 1 is 0 here, and 1 BC for people. */
	snprintf(result.text, sizeof(result.text), "%04d-%02d-%02d %02d:%02d:%02d",
			 tm.tm_year > 0 ? tm.tm_year : 1 - tm.tm_year, tm.tm_mon, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
	append_fraction(result.text, sizeof(result.text), fraction);
	strlcat(result.text, tm.tm_year > 0 ? "+00" : "+00 BC", sizeof(result.text));
	return result;
}

TimeText
interval_text(int64_t us)
{
	TimeText	result;
	int64		seconds = us / USECS_PER_SEC;
	int64		days = seconds / SECS_PER_DAY;

	result.text[0] = '\0';
	if (days != 0)
		snprintf(result.text, sizeof(result.text), "%" PRId64 " day%s ", days, days == 1 ? "" : "s");

	size_t		length = strlen(result.text);

	snprintf(result.text + length, sizeof(result.text) - length, "%02d:%02d:%02d",
			 static_cast<int>(seconds % SECS_PER_DAY / SECS_PER_HOUR),
			 static_cast<int>(seconds % SECS_PER_HOUR / SECS_PER_MINUTE),
			 static_cast<int>(seconds % SECS_PER_MINUTE));
	append_fraction(result.text, sizeof(result.text), us % USECS_PER_SEC);
	return result;
}

int64_t
unix_time(int64_t timestamptz)
{
	int64		result;

	if (TIMESTAMP_IS_NOBEGIN(timestamptz))
		return INT64_MIN;
	if (TIMESTAMP_IS_NOEND(timestamptz) || pg_add_s64_overflow(timestamptz, postgres_epoch_us, &result))
		return INT64_MAX;
	return result;
}

int64_t
unix_time_in(const Layout &layout, int64_t timestamptz)
{
	int64		unix_us = unix_time(timestamptz);

	if (unix_us < layout.epoch_us || unix_us >= ends_at_us(layout))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("time \"%s\" is out of range for the snowflake layout", timestamptz_to_str(timestamptz)),
				 errdetail("The layout's time runs from %s until before %s.",
						   time_text(layout.epoch_us).text, time_text(ends_at_us(layout)).text),
				 errhint("Check that the layout \"%s\" is the right one.", layout_text(layout).text)));
	return unix_us;
}

Datum
interval_datum(int64_t us)
{
	Interval   *result = static_cast<Interval *>(palloc0(sizeof(Interval)));

	result->time = us;
	return IntervalPGetDatum(result);
}

int64_t
timestamptz_of(int64_t unix_us)
{
	int64		result;

	if (unix_us == INT64_MAX)
		return DT_NOEND;
	return pg_sub_s64_overflow(unix_us, postgres_epoch_us, &result) ? DT_NOBEGIN : result;
}

}  // namespace snowflake
