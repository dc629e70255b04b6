"""The label store: events of people, durable and append-only."""
