{"id":"1","session_id":"s","timestamp":"2024-06-27T15:00:00Z","role":"user","content":"c"}
{"id":"2","session_id":"s","timestamp":"2024-06-27T15:00:00Z","role":"user","content":"d"}
