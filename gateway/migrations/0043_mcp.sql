-- additive
-- What of the API a key is for, as a JSON list of names; null for all of it.
alter table api_keys add column resources text;

-- The name of the MCP client that made a change; null for a change that came another way.
alter table audit add column client text;

-- Whether programs may delete records and replay deliveries by MCP.
alter table users add column mcp_deletes bigint not null default 1;
alter table users add column mcp_replays bigint not null default 1;
