/*
 * node.cpp
 *		This server's node number: what the setting snowflake.node_id means on
 *		this host and in the server's layout.
 */
#include "postgres/node.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "postgres/settings.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

constinit ServerNode node{};

/* An interface's address in network byte order, and its bits; null for what is neither IPv4 nor IPv6. */
const uint8_t *
address_bytes(const sockaddr *address, int *bits)
{
	if (address != nullptr && address->sa_family == AF_INET)
	{
		*bits = 32;
		return reinterpret_cast<const uint8_t *>(&reinterpret_cast<const sockaddr_in *>(address)->sin_addr);
	}
	if (address != nullptr && address->sa_family == AF_INET6)
	{
		*bits = 128;
		return reinterpret_cast<const uint8_t *>(&reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr);
	}
	return nullptr;
}

/* The one local address in the network. */
bool
find_address(const Network &network, uint8_t *found, Reason *reason)
{
	ifaddrs    *addresses;
	int			count = 0;

	if (getifaddrs(&addresses) != 0)
		return reason->refuse("Could not list the addresses of this host: %s.", strerror(errno));
	for (ifaddrs *entry = addresses; entry != nullptr; entry = entry->ifa_next)
	{
		int			bits = 0;
		const uint8_t *address = address_bytes(entry->ifa_addr, &bits);

		if (address == nullptr || !network.contains(address, bits))
			continue;
		/* One address may be on several interfaces. */
		if (count > 0 && memcmp(found, address, bits / 8) == 0)
			continue;
		memcpy(found, address, bits / 8);
		count++;
	}
	freeifaddrs(addresses);
	if (count == 0)
		return reason->refuse("This host has no address in the network.");
	if (count > 1)
		return reason->refuse("This host has %d addresses in the network; there must be one.", count);
	return true;
}

bool
resolve(const NodeId &node_id, const Layout &layout, uint64_t *number, Reason *reason)
{
	switch (node_id.source)
	{
		case NodeSource::unset:
			return reason->refuse("It is not set.");
		case NodeSource::number:
			return node_from_number(node_id.number, layout, number, reason);
		case NodeSource::parts:
			return node_from_parts(node_id, layout, number, reason);
		case NodeSource::hostname:
			{
				char		name[256];

				if (gethostname(name, sizeof(name)) != 0)
					return reason->refuse("Could not get the host name: %s.", strerror(errno));
				name[sizeof(name) - 1] = '\0';
				return node_from_host_name(name, layout, number, reason);
			}
		case NodeSource::address:
			{
				uint8_t		address[sizeof(Network::address)];

				return find_address(node_id.network, address, reason) &&
					node_from_address(node_id.network, address, layout, number, reason);
			}
		case NodeSource::automatic:
			*number = 0;
			return has_registry() ||
				reason->refuse("A free node number can only come from a registry, and \"snowflake.registry\" is "
							   "empty.");
	}
	return false;
}

}  // namespace

void
resolve_server_node()
{
	node.usable = resolve(server_node_id(), server_layout(), &node.number, &node.reason);
}

const ServerNode &
server_node()
{
	return node;
}

const char *
node_source_name()
{
	switch (server_node_id().source)
	{
		case NodeSource::number:
		case NodeSource::parts:
			return "setting";
		case NodeSource::hostname:
			return "hostname";
		case NodeSource::address:
			return "address";
		case NodeSource::automatic:
			return "auto";
		case NodeSource::unset:
			break;
	}
	return nullptr;
}

}  // namespace snowflake
