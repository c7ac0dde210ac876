-- Keys that ended, so that the duty which removes them need not look at the others.
create index api_keys_ended on api_keys ((coalesce(revoked_at, expires_at)))
  where expires_at is not null or revoked_at is not null;
