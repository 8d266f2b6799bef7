/*
 * node_id.cpp
 *		The text of the setting snowflake.node_id: where a server's node number
 *		comes from.
 */
#include "core/node_id.h"

#include <arpa/inet.h>

#include <cinttypes>
#include <cstring>

#include "core/parse.h"

namespace snowflake
{

namespace
{

constexpr std::string_view address_prefix = "address:";

bool
bit_at(const uint8_t *address, int bit) noexcept
{
	return address[bit / 8] >> (7 - bit % 8) & 1;
}

/*
 * Does a host name's last number come after a part that is a number too, as in
 * "ip-10-1-2-3"?  What stands before the last number is given.
 */
bool
follows_number(std::string_view before) noexcept
{
	if (before.empty() || before.back() != '-')
		return false;
	before.remove_suffix(1);

	size_t		start = before.size();

	while (start > 0 && is_digit(before[start - 1]))
		start--;
	return start < before.size() && (start == 0 || before[start - 1] == '-');
}

bool
parse_network(std::string_view text, Network *network, Reason *reason) noexcept
{
	std::string_view rest = text;
	std::string_view address = take_until(&rest, '/');
	char		buffer[INET6_ADDRSTRLEN];
	uint64_t	prefix;

	if (address.size() < sizeof(buffer))
	{
		memcpy(buffer, address.data(), address.size());
		buffer[address.size()] = '\0';
		if (inet_pton(AF_INET, buffer, network->address) == 1)
			network->address_bits = 32;
		else if (inet_pton(AF_INET6, buffer, network->address) == 1)
			network->address_bits = 128;
	}
	if (network->address_bits == 0 || !parse_digits(rest, network->address_bits, &prefix))
		return reason->refuse("\"%s\" is not a network, such as 10.1.0.0/22 or fd00:1::/112.", Quoted(text).text);
	network->prefix = static_cast<uint8_t>(prefix);
	for (int bit = network->prefix; bit < network->address_bits; bit++)
	{
		if (bit_at(network->address, bit))
			return reason->refuse("\"%s\" has bits set to the right of its prefix.", Quoted(text).text);
	}
	return true;
}

bool
parse_parts(std::string_view text, NodeId *node_id, Reason *reason) noexcept
{
	for (bool more = true; more;)
	{
		more = text.find(',') != std::string_view::npos;

		std::string_view item = take_until(&text, ',');
		std::string_view value = item;
		std::string_view name = take_until(&value, '=');

		if (!is_field_name(name) || item.find('=') == std::string_view::npos)
			return reason->refuse("\"%s\" is not a node number, a list of parts such as datacenter=3,worker=7, "
								  "hostname, address:NETWORK/PREFIX or auto.", Quoted(item).text);

		for (int i = 0; i < node_id->part_count; i++)
		{
			if (name == node_id->parts[i].name)
				return reason->refuse("The part \"%s\" is given twice.", Quoted(name).text);
		}
		if (node_id->part_count == max_id_bits)
			return reason->refuse("There are more than %d parts.", max_id_bits);

		NodeId::Part &part = node_id->parts[node_id->part_count++];

		memcpy(part.name, name.data(), name.size());
		part.name[name.size()] = '\0';
		if (!parse_digits(value, INT64_MAX, &part.value))
			return reason->refuse("The part \"%s\" is \"%s\", not a whole number from 0 to %" PRId64 ".",
								  Quoted(name).text, Quoted(value).text, INT64_MAX);
	}
	return true;
}

}  // namespace

bool
Network::contains(const uint8_t *candidate, int candidate_bits) const noexcept
{
	if (candidate_bits != address_bits)
		return false;
	for (int bit = 0; bit < prefix; bit++)
	{
		if (bit_at(candidate, bit) != bit_at(address, bit))
			return false;
	}
	return true;
}

bool
parse_node_id(std::string_view text, NodeId *node_id, Reason *reason) noexcept
{
	*node_id = NodeId{};
	if (text.empty())
		return true;
	if (text == "hostname")
		node_id->source = NodeSource::hostname;
	else if (text == "auto")
		node_id->source = NodeSource::automatic;
	else if (slice(text, 0, address_prefix.size()) == address_prefix)
	{
		node_id->source = NodeSource::address;
		return parse_network(slice(text, address_prefix.size()), &node_id->network, reason);
	}
	else if (is_digit(text[0]) || text[0] == '-' || text[0] == '+')
	{
		node_id->source = NodeSource::number;
		if (!parse_digits(text, INT64_MAX, &node_id->number))
			return reason->refuse("The node number \"%s\" is not a whole number from 0 to %" PRId64 ".",
								  Quoted(text).text, INT64_MAX);
	}
	else
	{
		node_id->source = NodeSource::parts;
		return parse_parts(text, node_id, reason);
	}
	return true;
}

bool
node_from_number(uint64_t number, const Layout &layout, uint64_t *node, Reason *reason) noexcept
{
	if (number > layout.max_node())
		return reason->refuse("The node number %" PRIu64 " is outside the range of the layout, 0 to %" PRIu64 ".",
							  number, layout.max_node());
	*node = number;
	return true;
}

bool
node_from_parts(const NodeId &node_id, const Layout &layout, uint64_t *node, Reason *reason) noexcept
{
	*node = 0;
	for (int i = 0; i < node_id.part_count; i++)
	{
		const NodeId::Part &part = node_id.parts[i];
		const Field *field = layout.find(part.name);

		if (field == nullptr || field->kind != FieldKind::node)
			return reason->refuse("The layout has no node field \"%s\".", Quoted(part.name).text);
		if (part.value > field->max())
			return reason->refuse("The part \"%s\" is %" PRIu64 ", outside its range in the layout, 0 to %" PRIu64 ".",
								  field->name, part.value, field->max());
		*node |= part.value << field->node_shift;
	}
	for (int i = 0; i < layout.field_count; i++)
	{
		const Field &field = layout.fields[i];
		bool		given = field.kind != FieldKind::node;

		for (int j = 0; j < node_id.part_count; j++)
			given = given || strcmp(node_id.parts[j].name, field.name) == 0;
		if (!given)
			return reason->refuse("The part \"%s\" is missing.", field.name);
	}
	return true;
}

bool
node_from_host_name(std::string_view host_name, const Layout &layout, uint64_t *node, Reason *reason) noexcept
{
	std::string_view rest = host_name;
	std::string_view first = take_until(&rest, '.');
	size_t		start = first.size();
	uint64_t	number;

	while (start > 0 && is_digit(first[start - 1]))
		start--;
	if (start == first.size())
		return reason->refuse("The host name \"%s\" does not end in digits before its first dot.",
							  Quoted(host_name).text);
	if (follows_number(slice(first, 0, start)))
		return reason->refuse("The host name \"%s\" ends in two numbers, as one that is made of an address does: hosts "
							  "that differ in the first one would have the same node number.", Quoted(host_name).text);
	if (!parse_digits(slice(first, start), layout.max_node(), &number))
		return reason->refuse("The digits that the host name \"%s\" ends in are outside the range of the layout, 0 to "
							  "%" PRIu64 ".",
							  Quoted(host_name).text, layout.max_node());
	*node = number;
	return true;
}

bool
node_from_address(const Network &network, const uint8_t *address, const Layout &layout,
				  uint64_t *node, Reason *reason) noexcept
{
	if (network.host_bits() > layout.node_bits)
		return reason->refuse("The network has %d host bits, but the node number of the layout has %d.",
							  network.host_bits(), layout.node_bits);
	*node = 0;
	for (int bit = network.prefix; bit < network.address_bits; bit++)
		*node = *node << 1 | bit_at(address, bit);
	return true;
}

}  // namespace snowflake
