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

/* libpq's parameters that are secrets themselves, not the way to one, besides all with a name like "password". */
constexpr std::string_view secrets[] = {"oauth_client_secret", "scram_client_key", "scram_server_key"};

/* What a password in the wrong place is often preceded by. */
constexpr std::string_view password_names[] = {"password", "passwd"};

constexpr size_t longest_address = 4096;

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

/* A text with what was percent-encoded as it is, in lower case. */
struct Decoded
{
	char		text[longest_address];
	size_t		length = 0;

	explicit Decoded(std::string_view encoded) noexcept
	{
		for (; !encoded.empty() && length < sizeof(text); encoded = slice(encoded, 1))
		{
			char		c = encoded.front();

			if (c == '%' && encoded.size() >= 3 && hex_value(encoded[1]) >= 0 && hex_value(encoded[2]) >= 0)
			{
				c = static_cast<char>(hex_value(encoded[1]) * 16 + hex_value(encoded[2]));
				encoded = slice(encoded, 2);
			}
			text[length++] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
		}
	}

	std::string_view view() const noexcept
	{
		return {text, length};
	}

	/* Without spaces around it: from version 18 on libpq trims them. */
	std::string_view trimmed() const noexcept
	{
		std::string_view rest = view();

		while (!rest.empty() && rest.front() == ' ')
			rest = slice(rest, 1);
		while (!rest.empty() && rest.back() == ' ')
			rest = slice(rest, 0, rest.size() - 1);
		return rest;
	}

	bool has(char c, size_t from = 0) const noexcept
	{
		return view().find(c, from) != std::string_view::npos;
	}
};

bool
refuse_password(Reason *reason) noexcept
{
	return reason->refuse("The address of a registry may hold no password.");
}

/* Does it say "password", or "password=" wherever it stands? */
bool
names_password(std::string_view decoded, bool with_value) noexcept
{
	for (std::string_view name : password_names)
	{
		for (size_t at = decoded.find(name); at != std::string_view::npos; at = decoded.find(name, at + 1))
		{
			if (!with_value || slice(decoded, at + name.size(), 1) == "=")
				return true;
		}
	}
	return false;
}

/* What is before the first '@', where that comes before the first slash, even after a '?'; libpq reads it so. */
bool
take_user(std::string_view *rest, Reason *reason) noexcept
{
	if (slice(*rest, 0, rest->find('/')).find('@') == std::string_view::npos)
		return true;
	return !Decoded(take_until(rest, '@')).has(':') || refuse_password(reason);
}

/* libpq takes what follows a colon for the port, and sees that it is none when it connects. */
bool
check_hosts(std::string_view hosts, Reason *reason) noexcept
{
	for (bool more = true; more;)
	{
		more = hosts.find(',') != std::string_view::npos;

		std::string_view host = take_until(&hosts, ',');
		uint64_t	port;

		/* KEEPER:PASSWORD%40HOST, all of it encoded, and a socket without a name in the file system. */
		if (Decoded(host).has('@', 1))
			return refuse_password(reason);
		if (!host.empty() && host.front() == '[')
			host = slice(host, std::min(host.find(']'), host.size() - 1) + 1);
		if (host.find(':') == std::string_view::npos)
			continue;
		(void) take_until(&host, ':');
		if (!host.empty() && !parse_digits(host, 65535, &port))
			return reason->refuse("A host's colon must be followed by its port; an address may hold no password.");
	}
	return true;
}

/* KEEPER:PASSWORD@HOST is a password, too. */
bool
check_parameter(std::string_view name, std::string_view value, Reason *reason) noexcept
{
	const Decoded decoded_name(name);
	const Decoded decoded_value(value);
	const std::string_view text = decoded_value.view();

	const size_t at = text.find('@', 1);

	if (names_password(decoded_name.view(), false) || (at != std::string_view::npos && text.find(':') < at))
		return refuse_password(reason);
	for (std::string_view secret : secrets)
	{
		if (decoded_name.trimmed() == secret)
			return refuse_password(reason);
	}
	return true;
}

bool
parse_postgresql(std::string_view rest, RegistryAddress *address, Reason *reason) noexcept
{
	if (rest.size() > longest_address)
		return reason->refuse("It is too long: at most %zu bytes.", longest_address);
	if (!take_user(&rest, reason))
		return false;
	if (names_password(Decoded(rest).view(), true))
		return refuse_password(reason);

	std::string_view parameters = rest;
	std::string_view place = take_until(&parameters, '?');

	/* A second '@' is none of libpq's; and what would follow could be a password in the wrong place. */
	if (place.find('@') != std::string_view::npos)
		return reason->refuse("It has a second \"@\"; write one that belongs to a name as %%40.");
	/* Nor are these, in a place or before parameters; what follows would be shown. */
	if (rest.find('#') != std::string_view::npos || place.find_first_of(" ;&=") != std::string_view::npos)
		return reason->refuse("Parameters follow a \"?\", and each other after \"&\"; "
							  "write a \"#\", \";\", \"&\", \"=\" or space that belongs to a name as %%23 and so on.");
	if (!check_hosts(slice(place, 0, place.find('/')), reason))
		return false;
	while (!parameters.empty())
	{
		std::string_view value = take_until(&parameters, '&');
		std::string_view name = take_until(&value, '=');

		if (!check_parameter(name, value, reason))
			return false;
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
	if (rest.find_first_of("?#") != std::string_view::npos || names_password(rest, true))
		return reason->refuse("An address of ZooKeeper has no parameters and no password.");
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
