// Owns: reading a topic with franz-go, with the clocks and the JSON line of clients/measure.py.
// Threads: Go's. Never: joins a group, copies a record.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	chunk   = 10_000
	silence = 30 * time.Second
)

func fail(why ...any) {
	fmt.Fprintln(os.Stderr, why...)
	os.Exit(1)
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		fail(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// The kernel's own mark: ru_maxrss would keep what the parent process had before exec.
func peakRSSBytes() int64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var kilobytes int64
		if n, _ := fmt.Sscanf(lines.Text(), "VmHWM: %d kB", &kilobytes); n == 1 {
			return kilobytes * 1024
		}
	}
	return 0
}

func main() {
	bootstrap := flag.String("bootstrap", "", "")
	topic := flag.String("topic", "", "")
	partitions := flag.Int("partitions", 1, "")
	wanted := flag.Int("records", 0, "")
	mebibytes := flag.Int("partition-mebibytes", 0, "")
	flag.Parse()

	options := []kgo.Opt{kgo.SeedBrokers(strings.Split(*bootstrap, ",")...)}
	if *mebibytes > 0 {
		options = append(options, kgo.FetchMaxPartitionBytes(int32(*mebibytes<<20)))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		fail(err)
	}
	defer client.Close()
	ctx := context.Background()
	if _, err := kadm.NewClient(client).ListTopics(ctx, *topic); err != nil {
		fail(err)
	}
	offsets := make(map[int32]kgo.Offset, *partitions)
	for p := range int32(*partitions) {
		offsets[p] = kgo.NewOffset().At(0)
	}

	cpu, began := cpuSeconds(), time.Now()
	var first time.Duration
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{*topic: offsets})
	count, size := 0, 0
	for count < *wanted {
		waiting, cancel := context.WithTimeout(ctx, silence)
		fetches := client.PollRecords(waiting, chunk)
		cancel()
		if err := fetches.Err(); err != nil {
			fail(err)
		}
		if count == 0 {
			first = time.Since(began)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			size += len(record.Value)
			count++
		})
	}
	seconds := time.Since(began).Seconds()
	err = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"records": count, "bytes": size, "seconds": seconds, "first_record_seconds": first.Seconds(),
		"cpu_seconds": cpuSeconds() - cpu, "peak_rss_bytes": peakRSSBytes(),
	})
	if err != nil {
		fail(err)
	}
}
