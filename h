{"id":"b","session_id":"s","timestamp":"2026-01-01T00:00:00.000000+00:00","role":"system","content":"x","reset":true}
{"id":"t","session_id":"s","timestamp":"2026-01-01T00:00:00.000000+00:00","role":"title","content":"x","replaces":["a"]}
