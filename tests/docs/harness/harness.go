// Give each line of requests to the function of docs/how-to/verify-signatures.md, and print what it says.
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var fields [6][]byte
		for place, field := range strings.Fields(lines.Text()) {
			if field != "-" {
				decoded, err := base64.StdEncoding.DecodeString(field)
				if err != nil {
					log.Fatal(err)
				}
				fields[place] = decoded
			}
		}
		seconds, err := strconv.ParseInt(string(fields[5]), 10, 64)
		if err != nil {
			log.Fatal(err)
		}
		reason := refusal(string(fields[0]), string(fields[1]), string(fields[2]),
			string(fields[3]), fields[4], time.Unix(seconds, 0))
		if reason == "" {
			reason = "accepted"
		}
		fmt.Println(reason)
	}
}
