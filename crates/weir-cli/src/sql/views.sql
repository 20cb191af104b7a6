
-- Each flow twice, once for each of its ends: what this host has sent, and what it has received.
@VIEW host_flows AS
SELECT f.src AS host, f.dst AS peer, 'client' AS side, f.first AS first, f.last AS last, f.proto AS proto, f.dport AS server_port,
  f.src_to_dst_packets AS sent_packets, f.src_to_dst_bytes AS sent_bytes,
  f.dst_to_src_packets AS received_packets, f.dst_to_src_bytes AS received_bytes,
  f.application AS application, f.name AS name, f.sensor AS sensor, f.day AS day, f.hour AS hour
FROM flows AS f
UNION ALL
SELECT f.dst AS host, f.src AS peer, 'server' AS side, f.first AS first, f.last AS last, f.proto AS proto, f.dport AS server_port,
  f.dst_to_src_packets AS sent_packets, f.dst_to_src_bytes AS sent_bytes,
  f.src_to_dst_packets AS received_packets, f.src_to_dst_bytes AS received_bytes,
  f.application AS application, f.name AS name, f.sensor AS sensor, f.day AS day, f.hour AS hour
FROM flows AS f;

-- A row for each address. Over all rows, every byte has been sent once and received once.
@VIEW flows_by_host AS
SELECT h.host AS host, count(*) AS flows, count(DISTINCT h.peer) AS peers,
  CAST(sum(CASE WHEN h.side = 'client' THEN 1 ELSE 0 END) AS BIGINT) AS flows_as_client,
  CAST(sum(h.sent_packets) AS BIGINT) AS sent_packets, CAST(sum(h.sent_bytes) AS BIGINT) AS sent_bytes,
  CAST(sum(h.received_packets) AS BIGINT) AS received_packets, CAST(sum(h.received_bytes) AS BIGINT) AS received_bytes,
  min(h.first) AS first, max(h.last) AS last
FROM host_flows AS h
GROUP BY h.host;

-- The 20 addresses with the most bytes.
@VIEW top_talkers AS
SELECT t.host AS host, t.sent_bytes + t.received_bytes AS bytes, t.sent_bytes AS sent_bytes, t.received_bytes AS received_bytes,
  t.flows AS flows, t.peers AS peers
FROM flows_by_host AS t
ORDER BY bytes DESC, host
LIMIT 20;

-- A row for each pair of addresses, whoever began.
@VIEW conversations AS
SELECT least(f.src, f.dst) AS one, greatest(f.src, f.dst) AS other, count(*) AS flows,
  CAST(sum(f.packets) AS BIGINT) AS packets, CAST(sum(f.bytes) AS BIGINT) AS bytes,
  CAST(sum(CASE WHEN f.src < f.dst THEN f.src_to_dst_bytes ELSE f.dst_to_src_bytes END) AS BIGINT) AS bytes_sent_by_one,
  CAST(sum(CASE WHEN f.src < f.dst THEN f.dst_to_src_bytes ELSE f.src_to_dst_bytes END) AS BIGINT) AS bytes_sent_by_other,
  min(f.first) AS first, max(f.last) AS last
FROM flows AS f
GROUP BY least(f.src, f.dst), greatest(f.src, f.dst);

-- What applications are used, or the protocol and the port of the server where weir has recognised none.
@VIEW by_application AS
SELECT a.application AS application, count(*) AS flows, count(DISTINCT a.src) AS clients, count(DISTINCT a.dst) AS servers,
  CAST(sum(a.packets) AS BIGINT) AS packets, CAST(sum(a.bytes) AS BIGINT) AS bytes
FROM (
  SELECT coalesce(f.application, CASE f.proto
      WHEN 6 THEN concat('tcp/', coalesce(f.dport, 0))
      WHEN 17 THEN concat('udp/', coalesce(f.dport, 0))
      ELSE concat('ip/', f.proto) END) AS application,
    f.src AS src, f.dst AS dst, f.packets AS packets, f.bytes AS bytes
  FROM flows AS f
) AS a
GROUP BY a.application;

-- The names of servers: from DNS what was asked for, from TLS, QUIC and HTTP who was meant.
@VIEW by_name AS
SELECT f.name AS name, f.application AS application, count(*) AS flows, count(DISTINCT f.src) AS clients,
  count(DISTINCT f.dst) AS servers, CAST(sum(f.packets) AS BIGINT) AS packets, CAST(sum(f.bytes) AS BIGINT) AS bytes
FROM flows AS f
WHERE f.name IS NOT NULL
GROUP BY f.name, f.application;

-- A row for each sensor and hour in which flows began. `incomplete`: flows during which the sensor has lost packets.
@VIEW by_hour AS
SELECT f.sensor AS sensor, date_trunc('hour', f.first) AS time, count(*) AS flows,
  CAST(sum(f.packets) AS BIGINT) AS packets, CAST(sum(f.bytes) AS BIGINT) AS bytes, count(DISTINCT f.src) AS clients,
  CAST(sum(CASE WHEN f.lost > 0 THEN 1 ELSE 0 END) AS BIGINT) AS incomplete
FROM flows AS f
GROUP BY f.sensor, date_trunc('hour', f.first);

-- Who has tried at least 50 hosts, or 50 ports, within an hour, and got no answer, or a RST, in at least half of the flows.
@VIEW scans AS
SELECT s.src AS src, s.time AS time, s.hosts AS hosts, s.ports AS ports, s.flows AS flows, s.unanswered AS unanswered, s.refused AS refused
FROM (
  SELECT f.src AS src, date_trunc('hour', f.first) AS time, count(DISTINCT f.dst) AS hosts, count(DISTINCT f.dport) AS ports,
    count(*) AS flows, CAST(sum(CASE WHEN f.dst_to_src_packets = 0 THEN 1 ELSE 0 END) AS BIGINT) AS unanswered,
    CAST(sum(CASE WHEN f.dst_to_src_tcp_flags LIKE '%R%' THEN 1 ELSE 0 END) AS BIGINT) AS refused
  FROM flows AS f
  GROUP BY f.src, date_trunc('hour', f.first)
) AS s
WHERE (s.hosts >= 50 OR s.ports >= 50) AND 2 * (s.unanswered + s.refused) >= s.flows;

-- Where TCP segments were sent again: by servers, and by clients.
@VIEW retransmissions AS
SELECT r.src AS src, r.dst AS dst, r.dport AS dport, r.flows AS flows, r.packets AS packets, r.by_client AS by_client, r.by_server AS by_server,
  CAST(100 AS DOUBLE) * (r.by_client + r.by_server) / r.packets AS percent
FROM (
  SELECT f.src AS src, f.dst AS dst, f.dport AS dport, count(*) AS flows, CAST(sum(f.packets) AS BIGINT) AS packets,
    CAST(sum(coalesce(f.src_to_dst_retransmissions, 0)) AS BIGINT) AS by_client, CAST(sum(coalesce(f.dst_to_src_retransmissions, 0)) AS BIGINT) AS by_server
  FROM flows AS f
  WHERE f.proto = 6
  GROUP BY f.src, f.dst, f.dport
) AS r
WHERE r.by_client + r.by_server > 0;

-- How long servers take to answer a SYN, in seconds, seen from the sensor. `p95`: 95 of 100 connections were at least as fast.
@VIEW slow_servers AS
SELECT f.dst AS dst, f.dport AS dport, count(*) AS connections, avg(f.server_seconds) AS mean, @P95 AS p95, max(f.server_seconds) AS longest
FROM flows AS f
WHERE f.server_seconds IS NOT NULL
GROUP BY f.dst, f.dport;
