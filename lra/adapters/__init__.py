"""Other people's attention behind our contract; each adapter says what it had to assume."""
