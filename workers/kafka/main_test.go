package kafka_test

import (
	"os"
	"testing"

	"msgexchange/db/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(m.Run())) }
