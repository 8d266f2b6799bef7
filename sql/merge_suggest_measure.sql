-- How many of the references of schemas without foreign keys snowflake_migrate.suggest() finds, and what it says of other columns.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
--
-- Shapes of well-known applications.  Of each table: its name, its key (with - what nothing makes), and columns: a>b refers to b;
-- a# has small numbers, from 0 on; a#1 from 1 on; a#90 great ones; a>b? refers in some rows, and is 0 in others.
--
CREATE TEMPORARY TABLE shape (app text, line text);
INSERT INTO shape
SELECT 'blog', l FROM string_to_table($$wp_users ID user_status#
wp_posts ID post_author>wp_users post_parent>wp_posts? menu_order# comment_count#
wp_postmeta meta_id post_id>wp_posts
wp_usermeta umeta_id user_id>wp_users
wp_comments comment_ID comment_post_ID>wp_posts comment_parent>wp_comments? user_id>wp_users? comment_karma#
wp_commentmeta meta_id comment_id>wp_comments
wp_terms term_id term_group#
wp_termmeta meta_id term_id>wp_terms
wp_term_taxonomy term_taxonomy_id term_id>wp_terms parent>wp_term_taxonomy? count#1
wp_links link_id link_owner>wp_users link_rating#
wp_woocommerce_order_items order_item_id order_id>wp_posts
wp_woocommerce_order_itemmeta meta_id order_item_id>wp_woocommerce_order_items$$, E'\n') AS l
UNION ALL SELECT 'forum', l FROM string_to_table($$users id trust_level# flag_level#
categories id user_id>users topic_id>topics? parent_category_id>categories? uploaded_logo_id>uploads? position# topic_count#
topics id user_id>users last_post_user_id>users category_id>categories featured_user1_id>users? featured_user2_id>users? posts_count#1 highest_post_number#1 views#90 deleted_by_id>users?
posts id user_id>users topic_id>topics post_number#1 reply_to_post_number# reply_to_user_id>users? last_editor_id>users deleted_by_id>users? locked_by_id>users? reads#90 quote_count# reply_count#
uploads id user_id>users filesize#90 width#90 height#90
post_action_types id position#1
post_actions id post_id>posts user_id>users post_action_type_id>post_action_types deleted_by_id>users? related_post_id>posts? deferred_by_id>users? agreed_by_id>users?
notifications id user_id>users topic_id>topics? post_number#1 notification_type#1 post_action_id>post_actions?
groups id automatic# user_count#
group_users id group_id>groups user_id>users notification_level#1
user_actions id action_type#1 user_id>users target_topic_id>topics? target_post_id>posts? target_user_id>users? acting_user_id>users
topic_links id topic_id>topics post_id>posts? user_id>users link_topic_id>topics? link_post_id>posts? clicks#
invites id invited_by_id>users redemption_count#
badge_groupings id position#
badges id badge_type_id>badge_types badge_grouping_id>badge_groupings grant_count# image_upload_id>uploads?
badge_types id
user_badges id badge_id>badges user_id>users granted_by_id>users post_id>posts? seq#
tags id topic_count#
topic_tags id topic_id>topics tag_id>tags$$, E'\n') AS l
UNION ALL SELECT 'game', l FROM string_to_table($$account id expansion#1
characters guid account>account race#1 class#1 gender# level#1 money#90 zone#90 map#
item_instance guid owner_guid>characters creatorGuid>characters? giftCreatorGuid>characters? count#1 durability#90
character_inventory item-item_instance guid>characters bag>item_instance? slot#
guild guildid leaderguid>characters EmblemStyle#
guild_rank id guildid>guild rid# rights#90
guild_member guid-characters guildid>guild rank#
mail id messageType# sender>characters receiver>characters money#90
mail_items id mail_id>mail item_guid>item_instance receiver>characters
character_pet id entry#90 owner>characters slot#
groups guid leaderGuid>characters looterGuid>characters lootMethod# masterLooterGuid>characters?
group_member memberGuid-characters guid>groups memberFlags# subgroup#
arena_team arenaTeamId captainGuid>characters type#1 rating#90
auctionhouse id itemguid>item_instance itemowner>characters buyguid>characters? startbid#90 lastbid#90
character_social id guid>characters friend>characters flags#
petition petitionguid ownerguid>characters
petition_sign id petitionguid>petition ownerguid>characters playerguid>characters player_account>account$$, E'\n') AS l
UNION ALL SELECT 'shop', l FROM string_to_table($$store store_id website_id>store_website sort_order#
store_website website_id sort_order#
eav_attribute_set attribute_set_id sort_order#
customer_entity entity_id website_id>store_website store_id>store default_billing>customer_address_entity? default_shipping>customer_address_entity? failures_num#
customer_address_entity entity_id parent_id>customer_entity is_active#
catalog_category_entity entity_id attribute_set_id>eav_attribute_set parent_id>catalog_category_entity? position#1 level#1 children_count#
catalog_product_entity entity_id attribute_set_id>eav_attribute_set has_options#
catalog_category_product entity_id category_id>catalog_category_entity product_id>catalog_product_entity position#
quote entity_id store_id>store customer_id>customer_entity? orig_order_id>sales_order? items_count#1
quote_item item_id quote_id>quote product_id>catalog_product_entity parent_item_id>quote_item? store_id>store
sales_order entity_id store_id>store customer_id>customer_entity? billing_address_id>sales_order_address shipping_address_id>sales_order_address? quote_id>quote total_item_count#1
sales_order_address entity_id parent_id>sales_order customer_address_id>customer_address_entity? customer_id>customer_entity?
sales_order_item item_id order_id>sales_order parent_item_id>sales_order_item? quote_item_id>quote_item store_id>store product_id>catalog_product_entity
sales_invoice entity_id order_id>sales_order store_id>store billing_address_id>sales_order_address state#1
sales_invoice_item entity_id parent_id>sales_invoice order_item_id>sales_order_item product_id>catalog_product_entity
review review_id entity_pk_value>catalog_product_entity status_id#1
wishlist wishlist_id customer_id>customer_entity shared#
wishlist_item wishlist_item_id wishlist_id>wishlist product_id>catalog_product_entity store_id>store$$, E'\n') AS l
UNION ALL SELECT 'works', l FROM string_to_table($$Person BusinessEntityID EmailPromotion#
Employee BusinessEntityID-Person VacationHours#90 SickLeaveHours#90 OrganizationLevel#
StateProvince StateProvinceID TerritoryID>SalesTerritory
SalesTerritory TerritoryID
Address AddressID StateProvinceID>StateProvince
Store StoreID SalesPersonID>Employee?
Customer CustomerID PersonID>Person? StoreID>Store? TerritoryID>SalesTerritory
CreditCard CreditCardID ExpMonth#1 ExpYear#90
ShipMethod ShipMethodID
ProductCategory ProductCategoryID
ProductSubcategory ProductSubcategoryID ProductCategoryID>ProductCategory
Product ProductID SafetyStockLevel#90 ReorderPoint#90 DaysToManufacture# ProductSubcategoryID>ProductSubcategory? ProductModelID>ProductModel?
ProductModel ProductModelID
BillOfMaterials BillOfMaterialsID ProductAssemblyID>Product? ComponentID>Product BOMLevel#
SalesOrderHeader SalesOrderID RevisionNumber#1 Status#1 CustomerID>Customer SalesPersonID>Employee? TerritoryID>SalesTerritory BillToAddressID>Address ShipToAddressID>Address ShipMethodID>ShipMethod CreditCardID>CreditCard?
SalesOrderDetail SalesOrderDetailID SalesOrderID>SalesOrderHeader OrderQty#1 ProductID>Product
Document DocumentID Owner>Employee ChangeNumber# Status#1
PurchaseOrderHeader PurchaseOrderID EmployeeID>Employee VendorID>Vendor ShipMethodID>ShipMethod
Vendor VendorID CreditRating#1
WorkOrder WorkOrderID ProductID>Product OrderQty#90 ScrapReasonID>ScrapReason?
ScrapReason ScrapReasonID$$, E'\n') AS l;
CREATE TEMPORARY TABLE tables AS
	SELECT app, w[1] AS name, split_part(w[2], '-', 1) AS key, nullif(split_part(w[2], '-', 2), '') AS key_of, w[3:] AS columns,
		/* Keys from 1 on in each, as sequences make them; of some tables few, of others many. */
		10 + (row_number() OVER (PARTITION BY app ORDER BY line COLLATE "C") * 37) % 190 AS rows
	FROM shape, regexp_split_to_array(line, ' ') AS w;
/* Who has the key of another has no more rows. */
UPDATE tables AS t SET rows = least(t.rows, p.rows) FROM tables AS p WHERE p.app = t.app AND p.name = t.key_of;
CREATE TEMPORARY TABLE truth AS
	SELECT t.app, t.name, substring(c FROM '^[A-Za-z_0-9]+') AS col, substring(c FROM '>([A-Za-z_]+)') AS referenced,
		c LIKE '%?' AS sometimes, substring(c FROM '#([0-9]*)') AS number, n
	FROM tables AS t, unnest(t.columns) WITH ORDINALITY AS c (c, n)
	UNION ALL
	SELECT t.app, t.name, t.key, t.key_of, false, NULL, 0 FROM tables AS t WHERE t.key_of IS NOT NULL;
DO $$
DECLARE
	one record;
BEGIN
	FOR one IN SELECT DISTINCT app FROM tables LOOP
		EXECUTE format('CREATE SCHEMA %I; CREATE SCHEMA %I', one.app, 'from_' || one.app);
	END LOOP;
	FOR one IN
		SELECT t.*, f.columns AS definitions, f.values
		FROM tables AS t, LATERAL (
			SELECT string_agg(format(', %I bigint', r.col), '' ORDER BY r.n) AS columns,
				string_agg(', ' || CASE
					WHEN r.referenced IS NOT NULL THEN format('CASE WHEN %s THEN 0 ELSE 1 + (g * %s) %% %s END',
						CASE WHEN r.sometimes THEN 'g % 3 = 0' ELSE 'false' END, 7 + 2 * r.n, p.rows)
					WHEN r.number = '90' THEN format('1000 + (g * %s) %% 8999', 7919 * r.n)
					ELSE format('%s + (g * %s) %% 7', coalesce(nullif(r.number, ''), '0'), r.n) END, '' ORDER BY r.n) AS values
			FROM truth AS r LEFT JOIN tables AS p ON p.app = r.app AND p.name = r.referenced
			WHERE r.app = t.app AND r.name = t.name AND r.n > 0) AS f
	LOOP
		EXECUTE format('CREATE TABLE %I.%I (%I bigint PRIMARY KEY %s, mark text%s)', one.app, one.name, one.key,
			CASE WHEN one.key_of IS NULL THEN 'DEFAULT snowflake_nextval()' ELSE '' END, one.definitions);
		EXECUTE format('CREATE TABLE %I.%I AS SELECT g AS %I, ''row '' || g AS mark %s FROM generate_series(1, %s) AS g',
			'from_' || one.app, one.name, one.key,
			(SELECT string_agg(format(', %s AS %I', btrim(v, ' '), r.col), '' ORDER BY r.n)
			 FROM truth AS r JOIN string_to_table(substr(one.values, 3), ', ') WITH ORDINALITY AS v (v, n) ON v.n = r.n
			 WHERE r.app = one.app AND r.name = one.name AND r.n > 0), one.rows);
	END LOOP;
END
$$;
CREATE TEMPORARY TABLE found AS
	SELECT a.app, c.relname AS name, s.object AS col, s.certainty,
		btrim((regexp_match(s.statement, $r$declare_reference\('.*?', '.*?', '(?:[^'.]*\.)?([^'.]*)'$r$))[1], '"') AS referenced
	FROM (SELECT DISTINCT app FROM tables) AS a, snowflake_migrate.suggest(ARRAY['from_' || a.app]::name[], a.app) AS s
		JOIN pg_class AS c ON c.oid = s.relation::regclass
	WHERE s.statement LIKE '%declare_reference(%';
CREATE TEMPORARY TABLE judged AS
	SELECT t.*, f.certainty, f.referenced AS said FROM truth AS t LEFT JOIN found AS f USING (app, name, col);
-- Of all references: those whose table is named, those that are sure, and what is said in error.  Whoever changes the rules makes
-- none of these figures worse: nothing that is sure may be wrong.
SELECT coalesce(app, 'all') AS app, count(*) FILTER (WHERE referenced IS NOT NULL) AS refs, count(*) FILTER (WHERE said = referenced) AS found,
	count(*) FILTER (WHERE said = referenced AND certainty = 'sure') AS sure,
	count(*) FILTER (WHERE said IS DISTINCT FROM referenced AND certainty = 'sure') AS sure_and_wrong,
	count(*) FILTER (WHERE said <> referenced) AS wrong, count(*) FILTER (WHERE said IS NOT NULL AND referenced IS NULL) AS no_reference
FROM judged GROUP BY ROLLUP (app) ORDER BY judged.app;
SELECT app, name, col, referenced, certainty, said FROM judged
WHERE said IS DISTINCT FROM referenced ORDER BY app, name COLLATE "C", col COLLATE "C";
SET client_min_messages = error;
DROP SCHEMA blog, forum, game, shop, works, from_blog, from_forum, from_game, from_shop, from_works CASCADE;
