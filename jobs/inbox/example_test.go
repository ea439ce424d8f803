package inbox_test

import (
	"fmt"
	"time"

	"msgexchange/jobs/inbox"
)

// Id 3 was given out to a transaction that is still open, or was rolled back: nobody can tell. Id 4 waits behind it, and
// passes once 3 is older than any transaction may be.
func ExampleAdvance() {
	const delay = inbox.CommitDelay(5 * time.Minute)
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	cursor := inbox.Cursor{W: 1, Step: 1}

	look := []inbox.Row{{ID: 2}, {ID: 4}}
	plan := inbox.Advance(cursor, look, inbox.Limits{Take: 50, Delay: delay}, now)
	fmt.Println("take", len(plan.Take), "W", plan.Cursor.W, "missing", plan.Cursor.Holes[0].Range)

	look = []inbox.Row{{ID: 4}}
	plan = inbox.Advance(plan.Cursor, look, inbox.Limits{Take: 50, Delay: delay}, now.Add(5*time.Minute))
	fmt.Println("take", len(plan.Take), "W", plan.Cursor.W, "passed", plan.Released[0].Range)

	late, _ := inbox.Late(plan.Released, []inbox.Row{{ID: 3}})
	fmt.Println("late", late[0].ID)
	// Output:
	// take 1 W 2 missing {3 3}
	// take 1 W 4 passed {3 3}
	// late 3
}
