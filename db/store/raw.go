package store

import (
	"context"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// Raw is a message's text as received.
type Raw struct {
	Text []byte // nil when Oversize
	// SizeBytes of the text, also when it was not kept.
	SizeBytes int
	// Oversize says that the text was larger than any message may be and was never loaded (contract §8.17).
	Oversize bool
}

// RawTexts gives the texts we keep of the messages named; the others are missing in the map.
func (s *Store) RawTexts(ctx context.Context, q db.Querier, at []message.Position) (map[message.Position]Raw, error) {
	ids := map[int32][]int64{}
	for _, p := range at {
		ids[p.Generation] = append(ids[p.Generation], p.ID)
	}
	out := make(map[message.Position]Raw, len(at))
	for gen, ids := range ids {
		rows, err := s.q.RawTexts(ctx, q, pgq.RawTextsParams{Generation: gen, Ids: ids})
		if err != nil {
			return nil, fmt.Errorf("read texts: %w", db.Classify(err))
		}
		for _, r := range rows {
			raw, err := s.zip.open(r.Body, int(r.SizeBytes))
			if err != nil {
				return nil, &fault.Error{Class: fault.Infra, Op: "unpack text", MsgID: r.MsgID, Err: err}
			}
			out[message.Position{Generation: gen, ID: r.MsgID}] = raw
		}
	}
	return out, nil
}

// maxTextBytes bounds what a stored text may unpack to: the mailbox column holds no more than 16 MiB.
const maxTextBytes = 16 << 20

// zip packs texts for msg_raw. An empty body with a size is a text that was too large to be loaded. Safe for concurrent use.
type zip struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newZip() *zip {
	enc, err1 := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	dec, err2 := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxTextBytes))
	if err1 != nil || err2 != nil {
		panic(fmt.Sprint("store: zstd refuses fixed options: ", err1, err2)) // a programming error
	}
	return &zip{enc, dec}
}

func (z *zip) pack(text string) []byte { return z.enc.EncodeAll([]byte(text), nil) }

func (z *zip) open(body []byte, size int) (Raw, error) {
	if len(body) == 0 {
		return Raw{SizeBytes: size, Oversize: true}, nil
	}
	text, err := z.dec.DecodeAll(body, make([]byte, 0, min(size, maxTextBytes)))
	return Raw{Text: text, SizeBytes: size}, err
}
