# snowflake: unique, time-ordered ids inside PostgreSQL
#
#	make, make install, make installcheck	as with any PGXS extension; PG_CONFIG=... selects the server
#	make test	everything that shows that it works; installs the packages that are missing
#	make format	lays the C++ out as .clang-format says
#	make lint	what can be said of the code without running it: layout, clang-tidy, cppcheck, ShellCheck, plpgsql_check
#	make demo	three private servers with an orders table over them; two game servers that are merged
#	make dist	an archive of the last commit for PGXN, by its version in META.json
#	make bench	the speed, as ratios within one run; BENCH=ids, report, merge, tables, references or adopt for a part of it

EXTENSION = snowflake snowflake_migrate
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" snowflake.control)
MODULE_big = snowflake
PGFILEDESC = "snowflake - unique, time-ordered ids"

CORE_OBJS = $(patsubst %.cpp,%.o,$(wildcard src/core/*.cpp))
OBJS = $(CORE_OBJS) $(patsubst %.cpp,%.o,$(wildcard src/postgres/*.cpp)) $(addprefix src/registry/,client.o keeper.o look_up.o server.o set_aside.o)
HEADER_FILES = $(wildcard src/core/*.h src/postgres/*.h src/registry/*.h)

# Each kind of registry is a module of its own, loaded by who speaks to it; ZooKeeper's, where its library is there.
HAVE_ZOOKEEPER := $(shell echo 'int main() { return zoo_set_servers_resolution_delay(nullptr, 0); }' | \
	$(CXX) -x c++ -include zookeeper/zookeeper.h - -o /dev/null -lzookeeper_st 2>/dev/null && echo yes)
# The workers of a merge are another one.
MODULES = snowflake_migrate snowflake_postgresql $(if $(HAVE_ZOOKEEPER),snowflake_zookeeper)

# The extensions' SQL, one file for each subject.
SQL_PARTS = $(addprefix src/sql/,layout.sql generate.sql carried.sql decode.sql text_form.sql mask.sql stat.sql registry.sql cluster.sql owners_code.sql audit.sql)
# Below each other as they build on each other: what every merge is made of; keys that go over to snowflake; the plan and
# the maps; the check; what is done with the maps; and what a user calls.
MIGRATE_PARTS = $(addprefix src/migrate/,snowflake.sql catalog.sql query.sql tables.sql declare.sql overload.sql expressions.sql owner.sql session.sql \
	adopt.sql adopt_blockers.sql adopt_plan.sql adopt_plan_blockers.sql adopt_swap.sql backfill.sql \
	plan.sql rows.sql nodes.sql numbering.sql clash.sql combine.sql dangling.sql map.sql map_report.sql sequences.sql \
	check.sql check_rights.sql check_tables.sql check_code.sql check_columns.sql check_keys.sql check_references.sql check_values.sql \
	words.sql check_undeclared.sql check_documents.sql check_clashes.sql check_effects.sql \
	indexes.sql copy.sql jobs.sql in_use.sql merge.sql verify.sql rollback.sql suggest.sql report_html.sql rights.sql)
DATA_built = snowflake--$(EXTVERSION).sql snowflake_migrate--$(EXTVERSION).sql
DATA = $(wildcard src/sql/snowflake--*--*.sql src/migrate/snowflake_migrate--*--*.sql)

# setup creates the extension for the others.
REGRESS ?= setup $(filter-out setup,$(sort $(patsubst sql/%.sql,%,$(wildcard sql/*.sql))))
REGRESS_OPTS = --temp-instance=./tmp_check --temp-config=test/snowflake.conf --encoding=UTF8 --no-locale
ISOLATION = $(patsubst test/isolation/specs/%.spec,%,$(sort $(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=snowflake \
	--temp-instance=./tmp_check_iso --temp-config=test/snowflake.conf --encoding=UTF8 --no-locale

EXTRA_CLEAN = tmp_check test/log test/unit/build test/model/build test/simulation/build bench/build \
	src/registry/*.o src/migrate/*.o snowflake_zookeeper$(DLSUFFIX)

PG_CONFIG = pg_config
CORE_FLAGS = -std=c++20 -Wall -Wextra -fno-exceptions -fno-rtti
PG_CPPFLAGS = -isystem $(shell $(PG_CONFIG) --includedir-server) -isystem $(shell $(PG_CONFIG) --includedir) -Isrc -DSNOWFLAKE_VERSION='"$(EXTVERSION)"'
# fmgr functions need not look at their one parameter.
PG_CXXFLAGS = $(CORE_FLAGS) -Wno-unused-parameter $(if $(WERROR),-Werror)

# The compiler's start files would only run constructors that this library does not have.
SHLIB_LINK = -nostartfiles

# The build needs packages that a fresh machine does not have: these targets fetch them before PGXS is looked for.
PACKAGE_TARGETS = test lint format demo bench
ifneq (,$(filter $(PACKAGE_TARGETS),$(MAKECMDGOALS)))
ifneq (ok,$(shell PG_CONFIG="$(PG_CONFIG)" tools/packages $(filter $(PACKAGE_TARGETS),$(MAKECMDGOALS)) >&2 && echo ok))
$(error could not install the packages that are missing)
endif
endif

# No bitcode: there is nothing in it to gain by inlining, and PostgreSQL's inliner
# aborts the server where it meets an alias, which clang makes of a constructor.
override with_llvm := no

# A client's pg_config may name a pgxs.mk without headers.
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq (,$(and $(wildcard $(PGXS)),$(wildcard $(shell $(PG_CONFIG) --includedir-server)/postgres.h)))
$(error $(PG_CONFIG) finds no PostgreSQL server headers: install them (on Debian: postgresql-server-dev-$(or \
	$(shell $(PG_CONFIG) --version | sed -n 's/^PostgreSQL \([0-9]*\).*/\1/p'),all)), or let tools/packages build do it, or set PG_CONFIG)
endif
include $(PGXS)

# PGXS knows no dependency on headers.
ZOOKEEPER_OBJS = src/registry/zookeeper_connection.o src/core/claim_text.o
MIGRATE_OBJS = src/migrate/jobs.o src/migrate/numbering.o
$(OBJS) src/registry/postgresql.o src/registry/zookeeper.o $(ZOOKEEPER_OBJS) $(MIGRATE_OBJS): $(HEADER_FILES)

LINK_MODULE = $(CXX) $(CXXFLAGS) -shared -nostartfiles -o $@ $^ $(LDFLAGS) $(LDFLAGS_SL) $(STORE_LIBRARY)
snowflake_%$(DLSUFFIX): src/registry/%.o
	$(LINK_MODULE)
snowflake_migrate$(DLSUFFIX): $(MIGRATE_OBJS)
	$(LINK_MODULE)
snowflake_postgresql$(DLSUFFIX): STORE_LIBRARY = $(libpq) -pthread
snowflake_zookeeper$(DLSUFFIX): STORE_LIBRARY = -lzookeeper_st
snowflake_zookeeper$(DLSUFFIX): $(ZOOKEEPER_OBJS)

# Others may have operators and functions in the schemas that CREATE EXTENSION puts on the path: so what a script creates
# is bound to PostgreSQL's own, and to what the script names with its schema.
SCRIPT_PATH = SET LOCAL search_path = pg_catalog, pg_temp;
snowflake--$(EXTVERSION).sql: $(SQL_PARTS)
snowflake_migrate--$(EXTVERSION).sql: $(MIGRATE_PARTS)
$(DATA_built): %--$(EXTVERSION).sql: %.control
	{ printf '%s\n\n' '\echo Use "CREATE EXTENSION $*" to load this file. \quit' '$(SCRIPT_PATH)'; \
		cat $(filter %.sql,$^); } > $@

# Where the server's folders belong to somebody else, installing needs sudo.
SUDO = $(if $(shell test -w '$(pkglibdir)' && test -w '$(datadir)/extension' || echo no),$(or \
	$(shell command -v sudo),$(error installing into $(pkglibdir) needs root or sudo)))

# Builds and installs, without a word where all is well.
.PHONY: ready
ready:
	@$(MAKE) -s all
	@$(SUDO) $(MAKE) -s install PG_CONFIG='$(PG_CONFIG)'

.PHONY: test
test: ready
	@PG_CONFIG='$(PG_CONFIG)' test/run $(STAGES)

# The tests that start servers of their own; as any user but root.
PROVE_TESTS ?= test/t/*.pl
.PHONY: tap
# More than there are processors: they wait some of the time.
TAP_JOBS ?= 4
tap: PROVE_FLAGS = -I test/perl -j$(TAP_JOBS) --timer
# Seconds that a test waits for what has to happen: more than PostgreSQL's 180, for a machine that does much else.
tap: export PG_TEST_TIMEOUT_DEFAULT ?= 600
# Those that take longest begin first, so that the end need not wait for one of them.
LONGEST = $(addprefix test/t/,345_owners_code.pl 330_merge_rollback.pl 340_merge_rights.pl 216_registry_put_back.pl 220_registry_zookeeper.pl \
	224_registry_forgotten.pl 200_registry.pl 350_documentation.pl 221_registry_zookeeper_hostile.pl 240_registry_set_aside.pl)
tap: override PROVE_TESTS := $(foreach test,$(LONGEST),$(filter $(test),$(wildcard $(PROVE_TESTS)))) $(filter-out $(LONGEST),$(wildcard $(PROVE_TESTS)))
tap:
	$(prove_installcheck)

.PHONY: lint
lint: ready
	@PG_CONFIG='$(PG_CONFIG)' tools/lint $(PARTS)

.PHONY: format
format:
	@tools/format $(wildcard src/*/*.cpp src/*/*.h test/*/*.cpp test/*/*.h)

# What is committed, without what only the repository needs.
.PHONY: dist
DISTVERSION = $(shell sed -n '1,/"provides"/s/^   "version": "\(.*\)",/\1/p' META.json)
dist:
	git archive --format=zip --prefix=snowflake-$(DISTVERSION)/ -o snowflake-$(DISTVERSION).zip HEAD

.PHONY: demo
demo: ready
	@PG_CONFIG='$(PG_CONFIG)' examples/run

.PHONY: bench
bench: ready bench/build/constant.so bench/build/latency.so bench/build/word
	@PG_CONFIG='$(PG_CONFIG)' bench/run $(BENCH)

bench/build/word: bench/word.cpp
	@mkdir -p bench/build
	@$(CXX) -std=c++20 -O2 -pthread -o $@ $<

bench/build/%.so: bench/%.c
	@mkdir -p bench/build
	@$(CC) $(CFLAGS) -fPIC -isystem $(includedir_server) -shared -o $@ $<
