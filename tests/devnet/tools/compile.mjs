// Reads a solc standard-JSON input on stdin, writes the output on stdout. Sources must be in the
// input: nothing is looked up on disk. argv[2] is the directory that holds node_modules.
import { createRequire } from 'node:module';
import { readFileSync, writeSync } from 'node:fs';

const solc = createRequire(`${process.argv[2]}/`)('solc');
const output = Buffer.from(solc.compile(readFileSync(0, 'utf8')));
for (let at = 0; at < output.length; ) at += writeSync(1, output, at);
