SELECT snowflake_migrate.declare_created('orders', 'created_at'), snowflake_migrate.declare_created('items', 'created_at') \g /dev/null
CALL snowflake_migrate.merge(ARRAY['source'], 'public', ARRAY[2], batch_size => :batch_size :options) \g /dev/null
