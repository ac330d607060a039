// Two independent linters over descriptions: node lint.mjs DIRECTORY FILE…, where DIRECTORY has redocly.yaml.
// Prints each finding on a line of its own; nothing where there is none.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import Parsers from '@stoplight/spectral-parsers'
import rulesets from '@stoplight/spectral-rulesets'
import spectral from '@stoplight/spectral-core'

const [directory, ...files] = process.argv.slice(2)
const cli = createRequire(import.meta.url).resolve('@redocly/cli/bin/cli.js')

function redocly(file) {
  const words = ['lint', '--config', join(directory, 'redocly.yaml'), '--format', 'json', '--max-problems', '1000', file]
  const ran = spawnSync(process.execPath, [cli, ...words], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    // It asks nobody anything.
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  })
  const found = JSON.parse(ran.stdout.slice(ran.stdout.indexOf('{')))
  return found.problems.map((one) => `${one.ruleId}: ${one.message} ${one.location[0]?.pointer ?? ''}`)
}

// Every rule that it has for OpenAPI, the recommended ones and the others, but for these.
const off = {
  // Who operates a service says whom to ask; this program does not know.
  'info-contact': 'off',
  // The license is named by its SPDX expression instead, and the two exclude each other.
  'license-url': 'off',
  // The groups are in the order in which an integrator needs them.
  'openapi-tags-alphabetical': 'off',
}

async function stoplight(file) {
  const linter = new spectral.Spectral()
  linter.setRuleset({ extends: [[rulesets.oas, 'all']], rules: off })
  const document = new spectral.Document(readFileSync(file, 'utf8'), Parsers.Json, file)
  const found = await linter.run(document)
  return found.map((one) => `${one.code}: ${one.message} ${one.path.join('/')}`)
}

for (const file of files) {
  for (const [name, found] of [['redocly', redocly(file)], ['spectral', await stoplight(file)]]) {
    for (const one of found) console.log(`${basename(file)}: ${name}: ${one}`)
  }
}
