/*
 * registry_address.cpp
 *		The text of the setting snowflake.registry: where claims come from.
 */
#include "core/registry_address.h"

#include <cstdio>
#include <cstring>

#include "core/parse.h"

namespace snowflake
{

namespace
{

constexpr std::string_view postgresql_schemes[] = {"postgresql://", "postgres://"};
constexpr std::string_view zookeeper_scheme = "zookeeper://";

/* libpq's parameters that are secrets themselves, not the way to one. */
constexpr std::string_view secrets[] = {"password", "sslpassword", "oauth_client_secret", "scram_client_key",
										"scram_server_key"};

bool
take_prefix(std::string_view *text, std::string_view prefix) noexcept
{
	if (slice(*text, 0, prefix.size()) != prefix)
		return false;
	*text = slice(*text, prefix.size());
	return true;
}

int
hex_value(char c) noexcept
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Is the name of a parameter, percent-encoded, this one?  From version 18 on libpq trims spaces. */
bool
is_parameter(std::string_view encoded, std::string_view name) noexcept
{
	while (!encoded.empty() && encoded.front() == ' ')
		encoded = slice(encoded, 1);
	while (!encoded.empty() && encoded.back() == ' ')
		encoded = slice(encoded, 0, encoded.size() - 1);
	for (char expected : name)
	{
		char		c = encoded.empty() ? '\0' : encoded.front();

		if (c == '%' && encoded.size() >= 3 && hex_value(encoded[1]) >= 0 && hex_value(encoded[2]) >= 0)
		{
			c = static_cast<char>(hex_value(encoded[1]) * 16 + hex_value(encoded[2]));
			encoded = slice(encoded, 2);
		}
		if (c != expected)
			return false;
		encoded = slice(encoded, 1);
	}
	return encoded.empty();
}

bool
refuse_password(Reason *reason) noexcept
{
	return reason->refuse("The address of a registry may hold no password.");
}

/* What is before the first '@', where that comes before the first slash, even after a '?'; libpq reads it so. */
bool
take_user(std::string_view *rest, Reason *reason) noexcept
{
	if (slice(*rest, 0, rest->find('/')).find('@') == std::string_view::npos)
		return true;
	return take_until(rest, '@').find(':') == std::string_view::npos || refuse_password(reason);
}

bool
parse_postgresql(std::string_view rest, RegistryAddress *address, Reason *reason) noexcept
{
	if (!take_user(&rest, reason))
		return false;

	std::string_view parameters = rest;
	std::string_view place = take_until(&parameters, '?');

	/* A second '@' is none of libpq's; and what would follow could be a password in the wrong place. */
	if (place.find('@') != std::string_view::npos)
		return reason->refuse("It has a second \"@\"; write one that belongs to a name as %%40.");
	while (!parameters.empty())
	{
		std::string_view value = take_until(&parameters, '&');
		std::string_view name = take_until(&value, '=');

		for (std::string_view secret : secrets)
		{
			if (is_parameter(name, secret))
				return refuse_password(reason);
		}
	}
	address->kind = RegistryKind::postgresql;
	snprintf(address->shown, sizeof(address->shown), "postgresql://%.*s", static_cast<int>(place.size()), place.data());
	return true;
}

bool
is_path(std::string_view path) noexcept
{
	if (path.size() < 2 || path.back() == '/')
		return false;
	for (size_t i = 0; i < path.size(); i++)
	{
		std::string_view name = slice(path, i, path.find('/', i + 1) - i);

		if (path[i] <= ' ' || path[i] > '~')
			return false;
		if (path[i] == '/' && (name == "/" || name == "/." || name == "/.."))
			return false;
	}
	return true;
}

bool
parse_zookeeper(std::string_view rest, RegistryAddress *address, Reason *reason) noexcept
{
	size_t		slash = std::min(rest.find('/'), rest.size());
	std::string_view hosts = slice(rest, 0, slash);
	std::string_view path = slice(rest, slash);

	if (hosts.find('@') != std::string_view::npos)
		return hosts.find(':') < hosts.find('@') ? refuse_password(reason) :
			reason->refuse("An address of ZooKeeper has no user.");
	if (!is_path(path))
		return reason->refuse("A path such as /snowflake must follow the hosts, without empty parts, \".\", \"..\" or "
							  "a slash at its end.");
	if (hosts.size() >= sizeof(address->hosts) || path.size() >= sizeof(address->path))
		return reason->refuse("It is too long: at most %zu bytes of hosts and %zu of path.",
							  sizeof(address->hosts) - 1, sizeof(address->path) - 1);
	memcpy(address->hosts, hosts.data(), hosts.size());
	memcpy(address->path, path.data(), path.size());
	for (bool more = true; more;)
	{
		more = hosts.find(',') != std::string_view::npos;

		std::string_view host = take_until(&hosts, ',');
		size_t		colon = host.rfind(':');
		uint64_t	port;

		if (colon == std::string_view::npos || colon == 0 || !parse_digits(slice(host, colon + 1), 65535, &port) ||
			port == 0)
			return reason->refuse("Each host must be followed by its port, as in zk1:2181,zk2:2181.");
		for (char c : host)
		{
			if (c <= ' ' || c > '~')
				return reason->refuse("A host's name has printable ASCII alone, and no spaces.");
		}
	}
	address->kind = RegistryKind::zookeeper;
	snprintf(address->shown, sizeof(address->shown), "zookeeper://%.120s%.120s", address->hosts, address->path);
	return true;
}

}  // namespace

bool
parse_registry_address(std::string_view text, RegistryAddress *address, Reason *reason) noexcept
{
	*address = {};
	if (text.empty())
		return true;
	for (std::string_view scheme : postgresql_schemes)
	{
		if (take_prefix(&text, scheme))
			return parse_postgresql(text, address, reason);
	}
	if (take_prefix(&text, zookeeper_scheme))
		return parse_zookeeper(text, address, reason);
	return reason->refuse("It must begin with postgresql:// or zookeeper://.");
}

}  // namespace snowflake
