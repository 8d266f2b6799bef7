/*
 * node_id.h
 *		The text of the setting snowflake.node_id: where a server's node number
 *		comes from.
 *
 *		103						the number
 *		datacenter=3,worker=7	all parts of it, in any order
 *		hostname				the digits that the host name ends in
 *		address:10.1.0.0/22		the host part of the local address in this network
 *		auto					a free one, from the registry
 */
#ifndef SNOWFLAKE_CORE_NODE_ID_H
#define SNOWFLAKE_CORE_NODE_ID_H

#include <cstdint>
#include <string_view>

#include "core/layout.h"
#include "core/reason.h"

namespace snowflake __attribute__((visibility("hidden")))
{

enum class NodeSource : uint8_t
{
	unset,						/* the empty text */
	number,
	parts,
	hostname,
	address,
	automatic,
};

/* An IPv4 or IPv6 network: the first prefix bits of an address in network byte order. */
struct Network
{
	uint8_t		address[16];
	uint8_t		address_bits;	/* 32 or 128 */
	uint8_t		prefix;

	int			host_bits() const noexcept
	{
		return address_bits - prefix;
	}
	bool		contains(const uint8_t *candidate, int candidate_bits) const noexcept;
};

struct NodeId
{
	NodeSource	source;
	uint64_t	number;			/* source number */
	Network		network;		/* source address */

	/* source parts */
	int			part_count;
	struct Part
	{
		char		name[max_field_name + 1];
		uint64_t	value;
	}			parts[max_id_bits];
};

/* Parses the setting's text.  What it means for a layout or on this host is not looked at. */
bool		parse_node_id(std::string_view text, NodeId *node_id, Reason *reason) noexcept;

/* These give the node number in a layout, or the reason why the setting does not fit it. */
bool		node_from_number(uint64_t number, const Layout &layout, uint64_t *node, Reason *reason) noexcept;
bool		node_from_parts(const NodeId &node_id, const Layout &layout, uint64_t *node, Reason *reason) noexcept;

/*
 * The digits that a host name, up to its first dot, ends in; refused where the part
 * before is a number too, as in "ip-10-1-2-3".
 */
bool		node_from_host_name(std::string_view host_name, const Layout &layout, uint64_t *node,
								Reason *reason) noexcept;

/* The host part of an address that the network contains. */
bool		node_from_address(const Network &network, const uint8_t *address, const Layout &layout,
							  uint64_t *node, Reason *reason) noexcept;

}  // namespace snowflake

#endif
