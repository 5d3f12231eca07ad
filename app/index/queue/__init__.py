"""Jobs of several processes, in PostgreSQL by Procrastinate (extra `shared`)."""
