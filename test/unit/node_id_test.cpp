/*
 * node_id_test.cpp
 *		The setting snowflake.node_id.
 */
#include "core/node_id.h"
#include "layouts.h"

using namespace snowflake;

namespace
{

NodeId
node_id_of(const std::string &text)
{
	NodeId		node_id;
	Reason		reason;

	EXPECT_TRUE(parse_node_id(text, &node_id, &reason)) << text << ": " << reason.text;
	return node_id;
}

bool
is_refused(const std::string &text)
{
	NodeId		node_id;
	Reason		reason;

	return !parse_node_id(text, &node_id, &reason) && reason.text[0] != '\0';
}

/* -1 where it is refused. */
template <typename Resolve>
int64_t
node_of(Resolve resolve)
{
	uint64_t	node;
	Reason		reason;

	if (resolve(&node, &reason))
		return static_cast<int64_t>(node);
	EXPECT_NE(reason.text[0], '\0');
	return -1;
}

TEST(NodeId, may_be_empty)
{
	EXPECT_EQ(node_id_of("").source, NodeSource::unset);
}

TEST(NodeId, is_a_number_that_the_layout_has_room_for)
{
	Layout		layout = layout_of("twitter");
	auto		node = [&] (const char *text) {
		return node_of([&] (uint64_t *n, Reason *r) { return node_from_number(node_id_of(text).number, layout, n, r); });
	};

	EXPECT_EQ(node("0"), 0);
	EXPECT_EQ(node("1023"), 1023);
	EXPECT_EQ(node("1024"), -1);
	EXPECT_EQ(node("9223372036854775807"), -1);
}

TEST(NodeId, is_all_parts_in_any_order)
{
	Layout		layout = layout_of("twitter");
	auto		node = [&] (const char *text) {
		return node_of([&] (uint64_t *n, Reason *r) { return node_from_parts(node_id_of(text), layout, n, r); });
	};

	EXPECT_EQ(node("datacenter=3,worker=7"), 103);
	EXPECT_EQ(node("worker=7,datacenter=3"), 103);
	EXPECT_EQ(node("worker=31,datacenter=31"), 1023);
	EXPECT_EQ(node("datacenter=3"), -1);
	EXPECT_EQ(node("datacenter=3,worker=32"), -1);
	EXPECT_EQ(node("datacenter=3,worker=7,rack=1"), -1);
	EXPECT_EQ(node("datacenter=3,worker=7,sequence=1"), -1);
}

TEST(NodeId, is_what_the_host_name_ends_in)
{
	Layout		layout = layout_of("twitter");
	auto		node = [&] (const char *name) {
		return node_of([&] (uint64_t *n, Reason *r) { return node_from_host_name(name, layout, n, r); });
	};

	EXPECT_EQ(node("orders-3"), 3);
	EXPECT_EQ(node("orders-0042.example.org"), 42);
	EXPECT_EQ(node("7"), 7);
	EXPECT_EQ(node("db7"), 7);
	EXPECT_EQ(node("v2-orders-3"), 3);
	EXPECT_EQ(node("orders2-3"), 3);
	EXPECT_EQ(node("-3"), 3);
	EXPECT_EQ(node("orders"), -1);
	EXPECT_EQ(node("orders.7"), -1);
	EXPECT_EQ(node("orders-1024"), -1);
	EXPECT_EQ(node("orders-99999999999999999999999"), -1);
	EXPECT_EQ(node(""), -1);
}

TEST(NodeId, is_not_the_end_of_an_address_in_the_host_name)
{
	Layout		layout = layout_of("twitter");
	Reason		reason;
	uint64_t	number;

	/* Another host of the network would have the same number, and so would "web-7-3" beside "orders-7-3". */
	for (const char *name : {"ip-10-1-2-3", "ip-10-1-2-3.eu-west-1.compute.internal", "10-3", "orders-7-0003", "orders-99999999999999999999999-3"})
	{
		EXPECT_FALSE(node_from_host_name(name, layout, &number, &reason)) << name;
		EXPECT_NE(std::string_view(reason.text).find("address"), std::string_view::npos) << reason.text;
	}
}

TEST(NodeId, is_the_host_part_of_an_address)
{
	Layout		layout = layout_of("twitter");
	Network		network = node_id_of("address:10.1.0.0/22").network;
	uint8_t		inside[] = {10, 1, 2, 5};
	uint8_t		outside[] = {10, 1, 4, 5};

	EXPECT_TRUE(network.contains(inside, 32));
	EXPECT_FALSE(network.contains(outside, 32));
	EXPECT_FALSE(network.contains(inside, 128));
	EXPECT_EQ(node_of([&] (uint64_t *n, Reason *r) { return node_from_address(network, inside, layout, n, r); }), 2 * 256 + 5);
}

TEST(NodeId, is_the_host_part_of_an_ipv6_address)
{
	Layout		layout = layout_of("game");
	Network		network = node_id_of("address:fd00:1::/108").network;
	uint8_t		address[16] = {0xfd, 0, 0, 1};

	address[13] = 0x0a;
	address[15] = 0x07;
	EXPECT_TRUE(network.contains(address, 128));
	EXPECT_EQ(node_of([&] (uint64_t *n, Reason *r) { return node_from_address(network, address, layout, n, r); }), 0x0a0007);
	address[0] = 0xfc;
	EXPECT_FALSE(network.contains(address, 128));
}

TEST(NodeId, is_refused_where_the_network_has_more_host_bits_than_the_layout)
{
	Layout		layout = layout_of("twitter");
	uint8_t		address[] = {10, 1, 2, 5};

	EXPECT_EQ(node_of([&] (uint64_t *n, Reason *r)
					  { return node_from_address(node_id_of("address:10.0.0.0/21").network, address, layout, n, r); }), -1);
}

TEST(NodeId, is_refused_where_it_is_malformed)
{
	for (const char *text : {" ", "-1", "+1", "1.5", "0x10", "1 ", "9223372036854775808", "abc", "datacenter", "datacenter=",
							 "=3", "datacenter=3,", ",datacenter=3", "datacenter=3,,worker=7", "datacenter=3,datacenter=4",
							 "datacenter=-1", "datacenter=3 ,worker=7", "Hostname", "auto ", "address:", "address:10.0.0.0",
							 "address:10.0.0.0/33", "address:10.0.0.1/22", "address:fd00::/129", "address:fd00::1/64",
							 "address:10.0.0.0/22/3", "address:x/22", "address:1234567890123456789012345678901234567890123456789/8"})
		EXPECT_TRUE(is_refused(text)) << text;
}

}  // namespace
