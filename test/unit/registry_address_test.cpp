/*
 * registry_address_test.cpp
 *		The setting snowflake.registry, and that no password gets through it.
 */
#include "core/registry_address.h"
#include "layouts.h"

using namespace snowflake;

namespace
{

RegistryAddress
address_of(const std::string &text)
{
	RegistryAddress address;
	Reason		reason;

	EXPECT_TRUE(parse_registry_address(text, &address, &reason)) << text << ": " << reason.text;
	return address;
}

/* Why a text is none; empty where it is one. */
std::string
refusal_of_address(const std::string &text)
{
	RegistryAddress address;
	Reason		reason;

	return parse_registry_address(text, &address, &reason) ? "" : reason.text;
}

bool
is_refused(const std::string &text)
{
	return !refusal_of_address(text).empty();
}

bool
is_refused_for_its_password(const std::string &text)
{
	return refusal_of_address(text).find("password") != std::string::npos;
}

bool
contains(const std::string &text, const std::string &part)
{
	return text.find(part) != std::string::npos;
}

TEST(RegistryAddress, may_be_empty)
{
	EXPECT_EQ(address_of("").kind, RegistryKind::none);
}

TEST(RegistryAddress, has_a_scheme)
{
	EXPECT_TRUE(is_refused("zk1:2181/snowflake"));
	EXPECT_TRUE(is_refused("http://host/database"));
	EXPECT_TRUE(is_refused("postgresql:/host/database"));
	EXPECT_TRUE(is_refused("host=registry dbname=registry"));
	EXPECT_TRUE(is_refused("registry"));
	EXPECT_TRUE(is_refused(" postgresql://host/database"));
	EXPECT_TRUE(is_refused("POSTGRESQL://host/database"));
	EXPECT_TRUE(is_refused("zookeeper:/zk1:2181/snowflake"));
}

TEST(PostgresqlAddress, is_shown_without_user_and_parameters)
{
	const char *const shown[][2] = {
		{"postgresql://", "postgresql://"},
		{"postgresql://registry", "postgresql://registry"},
		{"postgresql://registry/claims", "postgresql://registry/claims"},
		{"postgres://registry/claims", "postgresql://registry/claims"},
		{"postgresql://registry:5433/claims", "postgresql://registry:5433/claims"},
		{"postgresql://one:5432,two:5433/claims", "postgresql://one:5432,two:5433/claims"},
		{"postgresql://keeper@registry:5433/claims", "postgresql://registry:5433/claims"},
		{"postgresql://keeper@one:5432,two:5433/claims", "postgresql://one:5432,two:5433/claims"},
		{"postgresql://k%40eeper@registry/claims", "postgresql://registry/claims"},
		{"postgresql://[2001:db8::1]:5432/claims", "postgresql://[2001:db8::1]:5432/claims"},
		{"postgresql://keeper@[2001:db8::1]/claims", "postgresql://[2001:db8::1]/claims"},
		{"postgresql:///claims?host=/run/postgresql&user=keeper", "postgresql:///claims"},
		{"postgresql://registry?sslmode=verify-full", "postgresql://registry"},
		{"postgresql://keeper@?host=registry", "postgresql://"},
		{"postgresql://registry/claims?passfile=/etc/pass&target_session_attrs=read-write", "postgresql://registry/claims"},
		{"postgresql://registry/claims?application_name=a@b:c", "postgresql://registry/claims"},
		{"postgresql://registry/password", "postgresql://registry/password"},
		{"postgresql://registry:/claims", "postgresql://registry:/claims"},
		{"postgresql://%2Frun%2Fpostgresql:5433/claims", "postgresql://%2Frun%2Fpostgresql:5433/claims"},
		{"postgresql://%40socket/claims", "postgresql://%40socket/claims"},
		{"postgresql://registry/claims?host=@socket", "postgresql://registry/claims"},
		{"postgresql://registry/a%23b%3Dc", "postgresql://registry/a%23b%3Dc"},
	};

	for (const auto &[text, expected] : shown)
	{
		RegistryAddress address = address_of(text);

		EXPECT_EQ(address.kind, RegistryKind::postgresql) << text;
		EXPECT_STREQ(address.shown, expected) << text;
	}
}

TEST(PostgresqlAddress, is_cut_where_it_is_too_long_to_be_shown)
{
	RegistryAddress address = address_of("postgresql://" + std::string(1000, 'h') + "/claims");

	EXPECT_EQ(strlen(address.shown), sizeof(address.shown) - 1);
}

TEST(PostgresqlAddress, has_no_password_beside_its_user)
{
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper:secret@registry/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgres://keeper:secret@registry/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://:secret@registry/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper:@registry/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper:sec:ret@registry:5432/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper:secret@one:5432,two:5433/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper:secret@"));

	/* Its '@', its colon, or both percent-encoded. */
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper:secret%40registry"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper:secret%40registry/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper:secret%40registry:5432/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://one:5432,keeper:secret%40two/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper%3Asecret@registry/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper%3asecret%40registry/claims"));

	/* Where a port would be, or a host. */
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper:secret"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper:secret/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://[::1]:secret/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?host=keeper:secret@registry"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?dbname=postgresql://keeper:secret@registry/claims"));

	/* libpq looks for the '@' up to the first slash, past what would begin the parameters. */
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keep?er:secret@registry/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://keeper:sec?ret@registry/claims"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://?keeper:secret@registry"));
	EXPECT_STREQ(address_of("postgresql://registry?user=a@b").shown, "postgresql://b");
}

TEST(PostgresqlAddress, has_no_second_at_sign)
{
	EXPECT_TRUE(is_refused("postgresql://keeper@secret@registry/claims"));
	EXPECT_TRUE(is_refused("postgresql://keeper@registry/secret@claims"));
	EXPECT_TRUE(is_refused("postgresql://keeper/:secret@registry/claims"));
}

TEST(PostgresqlAddress, has_no_password_in_the_wrong_place)
{
	for (const char *text : {"registry/claims#password=secret", "registry/claims#secret", "registry#password=secret", "registry/claims&password=secret",
							 "registry/claims;password=secret", "registry/claims password=secret", "registry/claims%20password=secret",
							 "registry/claims%3Fpassword%3Dsecret", "registry/password=secret", "registry/claims?sslmode=require#password=secret",
							 "registry/claims?application_name=password=secret", "registry/claims?options=-c%20PASSWORD%3Dsecret",
							 "registry/claims?application_name=x passwd=secret", "registry/claims&sslmode=require"})
		EXPECT_TRUE(is_refused("postgresql://" + std::string(text))) << text;
	EXPECT_TRUE(is_refused("postgresql://registry/" + std::string(5000, 'd')));
}

TEST(PostgresqlAddress, has_no_parameter_that_is_a_secret)
{
	for (const char *name : {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"})
	{
		const std::string secret = name;

		EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?" + secret + "=x"));
		EXPECT_TRUE(is_refused_for_its_password("postgresql://registry?" + secret + "=x"));
		EXPECT_TRUE(is_refused_for_its_password("postgresql://?" + secret + "=x"));
		EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?sslmode=require&" + secret + "=x"));
		EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?" + secret + "=x&sslmode=require"));
		EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?" + secret + "="));
		EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?" + secret));

		/* Some versions of libpq trim names. */
		EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims? " + secret + "=x"));
		EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?" + secret + "  =x"));

		/* Names that only begin or end so are others', but for a password's. */
		EXPECT_EQ(is_refused("postgresql://registry/claims?" + secret + "s=x"), contains(secret, "password"));
		EXPECT_EQ(is_refused("postgresql://registry/claims?x" + secret + "=x"), contains(secret, "password"));
		EXPECT_FALSE(is_refused("postgresql://registry/claims?" + secret.substr(0, secret.size() - 1) + "=x"));
	}
}

/* Writes some or all of the characters as %xx. */
std::string
percent_encoded(const std::string &text, std::mt19937_64 &random, uint64_t one_in)
{
	std::string encoded;
	char		code[4];

	for (char c : text)
	{
		snprintf(code, sizeof(code), random() % 2 == 0 ? "%%%02x" : "%%%02X", static_cast<unsigned int>(c));
		encoded += random() % one_in == 0 ? std::string(code) : std::string(1, c);
	}
	return encoded;
}

TEST(PostgresqlAddress, has_no_secret_whose_name_is_percent_encoded)
{
	std::mt19937_64 random(1);

	EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?p%61ssword=x"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?%70%61%73%73%77%6F%72%64=x"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?%50assword=x"));
	EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?PASSWORD=x"));
	EXPECT_FALSE(is_refused("postgresql://registry/claims?p%6ssword=x"));
	EXPECT_FALSE(is_refused("postgresql://registry/claims?passwor%6=x"));
	EXPECT_FALSE(is_refused("postgresql://registry/claims?%2570assword=x"));
	for (const char *name : {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"})
	{
		for (uint64_t one_in : {1, 2, 5})
		{
			for (int i = 0; i < 20; i++)
				EXPECT_TRUE(is_refused_for_its_password("postgresql://registry/claims?sslmode=require&" +
														percent_encoded(name, random, one_in) + "=x"));
		}
	}
}

TEST(ZookeeperAddress, has_hosts_and_a_path)
{
	RegistryAddress address = address_of("zookeeper://zk1:2181,zk2:2182,10.0.0.3:65535/services/snowflake");

	EXPECT_EQ(address.kind, RegistryKind::zookeeper);
	EXPECT_STREQ(address.hosts, "zk1:2181,zk2:2182,10.0.0.3:65535");
	EXPECT_STREQ(address.path, "/services/snowflake");
	EXPECT_STREQ(address.shown, "zookeeper://zk1:2181,zk2:2182,10.0.0.3:65535/services/snowflake");
	EXPECT_STREQ(address_of("zookeeper://[::1]:2181/s").hosts, "[::1]:2181");
	EXPECT_STREQ(address_of("zookeeper://zk1:2181/a.b/..c/d.").path, "/a.b/..c/d.");
}

TEST(ZookeeperAddress, has_a_port_for_each_host)
{
	for (const char *hosts : {"zk1", "zk1:", "zk1:0", "zk1:65536", "zk1:21x", ":2181", "", "zk1:2181,", ",zk1:2181", "zk1:2181,,zk2:2181",
							  "zk1:2181,zk2", "zk1:-1", "zk1:99999999999999999999", "zk 1:2181", "zk\x01:2181", "zk\xc3\xa4:2181"})
		EXPECT_TRUE(is_refused("zookeeper://" + std::string(hosts) + "/snowflake")) << hosts;
}

TEST(ZookeeperAddress, has_a_path_that_zookeeper_takes)
{
	for (const char *path : {"", "/", "/snowflake/", "//snowflake", "/a//b", "/.", "/..", "/a/./b", "/a/../b", "/a/..", "/a b", "/a\x01",
							 "/\xc3\xa4"})
		EXPECT_TRUE(is_refused("zookeeper://zk1:2181" + std::string(path))) << path;
}

TEST(ZookeeperAddress, has_no_user_and_no_password)
{
	EXPECT_TRUE(is_refused_for_its_password("zookeeper://keeper:secret@zk1:2181/snowflake"));
	EXPECT_TRUE(is_refused("zookeeper://keeper@zk1:2181/snowflake"));
	EXPECT_TRUE(is_refused("zookeeper://zk1:2181,keeper:secret@zk2:2181/snowflake"));
	EXPECT_TRUE(is_refused("zookeeper://zk1:2181/snowflake?password=secret"));
	EXPECT_TRUE(is_refused("zookeeper://zk1:2181/snowflake#secret"));
	EXPECT_TRUE(is_refused("zookeeper://zk1:2181/password=secret"));
}

TEST(ZookeeperAddress, has_a_length_that_fits)
{
	RegistryAddress longest;
	const std::string host = std::string(511 - 5, 'h') + ":2181";
	const std::string path = "/" + std::string(254, 'p');

	longest = address_of("zookeeper://" + host + path);
	EXPECT_EQ(longest.hosts, host);
	EXPECT_EQ(longest.path, path);
	EXPECT_LT(strlen(longest.shown), sizeof(longest.shown));
	EXPECT_TRUE(is_refused("zookeeper://h" + host + path));
	EXPECT_TRUE(is_refused("zookeeper://" + host + path + "p"));
}

/* Whatever is refused, for whatever reason: nothing of it is repeated. */
TEST(Reason, repeats_no_part_of_an_address)
{
	const std::string secret = "Zq7";
	std::mt19937_64 random(1);
	int			refused = 0;

	const std::vector<std::string> pieces = {
		"postgresql://", "postgres://", "zookeeper://", "host", "host:5432", ":", "@", "/", "?", "&", "=", ",", "%", "%40", "%3A", " ",
		"user", "user:" + secret + "@", secret, secret, secret, "password=" + secret, "?password=" + secret, "&p%61ssword=" + secret,
		"sslpassword=" + secret, "?sslmode=require", "/claims", "//", "/..", "zk1:2181", "zk2:" + secret, "\n", "\xff", std::string(1, '\0'),
	};

	for (int i = 0; i < 200000; i++)
	{
		std::string text = i % 8 == 0 ? "" : pieces[random() % 3];
		RegistryAddress address;
		Reason		reason;

		for (uint64_t more = random() % 8; more > 0; more--)
			text += pieces[random() % pieces.size()];
		if (random() % 64 == 0)
			text += std::string(1000, 'Z');

		bool		is_one = parse_registry_address(text, &address, &reason);

		ASSERT_EQ(is_one, reason.text[0] == '\0');
		if (is_one)
		{
			/* libpq's view: a user and a password are what is before the first '@', up to the first slash. */
			std::string rest = contains(text, "://") ? text.substr(text.find("://") + 3) : "";
			std::string authority = rest.substr(0, rest.find('/'));

			ASSERT_LT(strlen(address.shown), sizeof(address.shown));
			if (address.kind == RegistryKind::postgresql)
			{
				ASSERT_FALSE(contains(authority, "@") && contains(authority.substr(0, authority.find('@')), ":")) << text;
				ASSERT_FALSE(contains(address.shown, "@") || contains(address.shown, "?")) << text;
			}
			continue;
		}
		refused++;
		ASSERT_FALSE(contains(reason.text, secret)) << text;
		ASSERT_FALSE(contains(reason.text, "ZZ")) << text;
		ASSERT_FALSE(contains(reason.text, "5432")) << text;
		ASSERT_FALSE(contains(reason.text, "claims")) << text;
	}
	EXPECT_GT(refused, 100000);
}

}  // namespace
