// SPDX-License-Identifier: Apache-2.0

// Verifies a log in a folder with the packages of Go's checksum database, which know nothing of
// fds:
//
//	verify FOLDER STEP OLDER...
//
// FOLDER/checkpoint must be signed by FOLDER/vkey. Every STEP-th entry of its bundles must be in its
// tree, and every older checkpoint (FOLDER/OLDER) must be of a tree that it extends. Prints the
// number of entries.
package main

import (
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type folder string

func (f folder) read(name string) []byte {
	data, err := os.ReadFile(filepath.Join(string(f), name))
	check(err)
	return data
}

// The methods of a tlog.TileReader. Go's paths begin with tile/HEIGHT, those of tlog-tiles with
// tile.
func (f folder) Height() int                         { return 8 }
func (f folder) SaveTiles(_ []tlog.Tile, _ [][]byte) {}
func (f folder) ReadTiles(tiles []tlog.Tile) (all [][]byte, err error) {
	for _, t := range tiles {
		all = append(all, f.read(strings.Replace(t.Path(), "tile/8/", "tile/", 1)))
	}
	return all, nil
}

func (f folder) checkpoint(name string) (tree tlog.Tree) {
	verifier, err := note.NewVerifier(string(f.read("vkey")))
	check(err)
	n, err := note.Open(f.read(name), note.VerifierList(verifier))
	check(err)
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 4 || lines[0] != verifier.Name() || lines[3] != "" {
		log.Fatalf("%s: not a checkpoint: %q", name, n.Text)
	}
	_, err = fmt.Sscan(lines[1], &tree.N)
	check(err)
	tree.Hash, err = tlog.ParseHash(lines[2])
	check(err)
	return tree
}

// The entries of a bundle of the tree.
func (f folder) entries(tree tlog.Tree, n int64) (all [][]byte) {
	tile := tlog.Tile{H: 8, L: -1, N: n, W: 256}
	if rest := tree.N - 256*n; rest < 256 {
		tile.W = int(rest)
	}
	data := f.read(strings.Replace(tile.Path(), "tile/8/data/", "tile/entries/", 1))
	for len(data) > 0 {
		size := 2 + int(binary.BigEndian.Uint16(data))
		all = append(all, data[2:size])
		data = data[size:]
	}
	if len(all) != tile.W {
		log.Fatalf("%s has %d entries", tile.Path(), len(all))
	}
	return all
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	f := folder(os.Args[1])
	step, err := strconv.ParseInt(os.Args[2], 10, 64)
	check(err)
	tree := f.checkpoint("checkpoint")
	reader := tlog.TileHashReader(tree, f)
	for n := int64(0); 256*n < tree.N; n++ {
		for i, entry := range f.entries(tree, n) {
			number := 256*n + int64(i)
			if number%step != 0 {
				continue
			}
			proof, err := tlog.ProveRecord(tree.N, number, reader)
			check(err)
			check(tlog.CheckRecord(proof, tree.N, tree.Hash, number, tlog.RecordHash(entry)))
		}
	}
	for _, name := range os.Args[3:] {
		old := f.checkpoint(name)
		proof, err := tlog.ProveTree(tree.N, old.N, reader)
		check(err)
		check(tlog.CheckTree(proof, tree.N, tree.Hash, old.N, old.Hash))
	}
	fmt.Println(tree.N)
}
