-- Orders made since the id :before, the longest wait for the clock in ms, ids that are there twice.
SELECT count(*), (SELECT round(extract(epoch FROM longest_wait) * 1000) FROM snowflake_stat), count(*) - count(DISTINCT id)
FROM orders WHERE id > :before;
