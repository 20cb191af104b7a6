-- The views read whatever files are there when a question is asked. Day and hour are those in which a file began, in UTC, and engines
-- open only the files of the days and sensors that a question is about. Flows that two sensors have seen are there twice.
--
-- Examples:
--   SELECT host, sent_bytes, received_bytes FROM flows_by_host WHERE flows > 100 ORDER BY sent_bytes DESC LIMIT 10
--   SELECT name, sum(bytes) FROM flows WHERE day = '2026-11-30' AND application = 'tls' GROUP BY name ORDER BY 2 DESC LIMIT 10

-- A row for each flow. `src` is who began. docs/flows.md of weir describes the columns.
