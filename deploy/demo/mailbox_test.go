//go:build demo

package demo

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProbe(t *testing.T) {
	m, err := startMailbox()
	require.NoError(t, err)
	db, err := sql.Open("mysql", m.dsn+"?parseTime=true&maxAllowedPacket=0&time_zone=%27%2B08:00%27&interpolateParams=true&clientFoundRows=true")
	require.NoError(t, err)
	q := func(s string, args ...any) {
		t.Helper()
		rows, err := db.Query(s, args...)
		if err != nil {
			t.Log(s, "ERR", err)
			return
		}
		cols, _ := rows.Columns()
		for rows.Next() {
			v := make([]sql.NullString, len(cols))
			p := make([]any, len(cols))
			for i := range v {
				p[i] = &v[i]
			}
			rows.Scan(p...)
			t.Log(v)
		}
		t.Log(s, cols, rows.Err())
	}
	for range 3 {
		r, err := db.Exec("INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS) VALUES (?,?,'VALID'),(?,?,'VALID')", "<MSG>机位</MSG>", "2026-11-30 12:00:01", "b", "2026-11-30 12:00:02")
		require.NoError(t, err)
		id, _ := r.LastInsertId()
		n, _ := r.RowsAffected()
		t.Log(id, n)
	}
	q("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()")
	q("SELECT CMINMSGS_ID, CAST(CMINMSGS_DATE_RECEIVED AS CHAR) FROM `cminmsgs` WHERE CMINMSGS_ID > ? ORDER BY CMINMSGS_ID LIMIT ?", 3, 2)
	q("EXPLAIN SELECT CMINMSGS_ID, CAST(CMINMSGS_DATE_RECEIVED AS CHAR) FROM `cminmsgs` WHERE CMINMSGS_ID > ? ORDER BY CMINMSGS_ID LIMIT ?", 3, 2)
	q("EXPLAIN SELECT CMINMSGS_ID FROM `cminmsgs` WHERE CMINMSGS_ID BETWEEN 1 AND 2 OR CMINMSGS_ID BETWEEN 4 AND 4 ORDER BY CMINMSGS_ID LIMIT ?", 3)
	q("SELECT CMINMSGS_ID FROM `cminmsgs` WHERE CMINMSGS_ID BETWEEN 1 AND 2 OR CMINMSGS_ID BETWEEN 4 AND 4 ORDER BY CMINMSGS_ID LIMIT ?", 9)
	q("SELECT CMINMSGS_ID, CAST(CMINMSGS_DATE_RECEIVED AS CHAR), OCTET_LENGTH(CMINMSGS_CLOB_MSG), IF(OCTET_LENGTH(CMINMSGS_CLOB_MSG) > ?, NULL, CMINMSGS_CLOB_MSG) FROM cminmsgs WHERE CMINMSGS_ID BETWEEN ? AND ? ORDER BY CMINMSGS_ID LIMIT ?", 1000, 1, 2, 10)
	q("SELECT COALESCE(MIN(CMINMSGS_ID), 0), COALESCE(MAX(CMINMSGS_ID), 0), @@auto_increment_increment FROM cminmsgs")
	q("EXPLAIN SELECT COALESCE(MIN(CMINMSGS_ID), 0), COALESCE(MAX(CMINMSGS_ID), 0), @@auto_increment_increment FROM cminmsgs")
	q("SHOW INDEX FROM cminmsgs")
	q("SHOW CREATE TABLE coutmsgs")
	q("SELECT @@version, @@time_zone, NOW(), @@max_allowed_packet")
	q("SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS WHERE TABLE_NAME='cminmsgs'")
	q("SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_NAME='cminmsgs'")
	q("SHOW GRANTS")
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	require.NoError(t, err)
	rows, err := tx.Query("SELECT CMINMSGS_ID, CMINMSGS_DATE_PROCESSED IS NOT NULL FROM cminmsgs WHERE CMINMSGS_ID IN (?,?) FOR UPDATE", 1, 2)
	require.NoError(t, err)
	for rows.Next() {
		var id int64
		var m bool
		require.NoError(t, rows.Scan(&id, &m))
		t.Log(id, m)
	}
	r, err := tx.Exec("UPDATE cminmsgs SET CMINMSGS_DATE_PROCESSED = ?, CMINMSGS_STATUS = CASE CMINMSGS_ID WHEN ? THEN ? WHEN ? THEN ? END, CMINMSGS_SUBSYSTEM_SEQUENCE = COALESCE(CMINMSGS_SUBSYSTEM_SEQUENCE, CASE CMINMSGS_ID WHEN ? THEN ? END) WHERE CMINMSGS_DATE_PROCESSED IS NULL AND CMINMSGS_ID IN (?,?)", "2026-11-30 13:00:00", 1, "PROCESSED", 2, "X", 1, 55, 1, 2)
	require.NoError(t, err)
	t.Log(r.RowsAffected())
	require.NoError(t, tx.Commit())
	q("SELECT CMINMSGS_ID, CMINMSGS_DATE_PROCESSED, CMINMSGS_STATUS, CMINMSGS_SUBSYSTEM_SEQUENCE FROM cminmsgs")
	q("SELECT CMINMSGS_ID FROM cminmsgs ORDER BY CMINMSGS_ID DESC LIMIT 2")
	_, err = db.Exec("INSERT INTO COUTMSGS (COUTMSGS_CLOB_MSG, COUTMSGS_DATE_INSERTED, ROUTINGID) VALUES ('<MSG/>', NOW(), 'R')")
	require.NoError(t, err)
	q("SELECT * FROM COUTMSGS")
	q("SELECT * FROM information_schema.INNODB_TRX")
	t.Log(m.marked())
	require.NoError(t, db.Close())
	require.NoError(t, m.close())
}
