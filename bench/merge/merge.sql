SELECT snowflake_merge_created('orders', 'created_at'), snowflake_merge_created('items', 'created_at') \g /dev/null
CALL snowflake_merge(ARRAY['source'], 'public', ARRAY[2], batch_size => :batch_size) \g /dev/null
