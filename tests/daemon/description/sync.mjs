// What `scripts/sync-api.mjs` of the published client does, over our description, and the client's own sources around
// it: node sync.mjs DESCRIPTION PACKAGE OUT. The sources come out of the package's source maps, to OUT/src; its
// generated files, `types/api.ts` and `routes/index.ts`, are made anew. Prints the routes that are not ours: those
// keep the package's own types, so that a complaint of the type checker is about what we describe.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import openapiTS from 'openapi-typescript'

const [file, published, out] = process.argv.slice(2)

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function sources() {
  const root = join(published, '_esm')
  for (const name of readdirSync(root, { recursive: true })) {
    if (!name.endsWith('.js.map')) continue
    const map = JSON.parse(readFileSync(join(root, name), 'utf8'))
    map.sources.forEach((source, at) => {
      const inside = relative(published, resolve(root, dirname(name), map.sourceRoot ?? '', source))
      write(join(out, inside), map.sourcesContent[at])
    })
  }
}

sources()
const description = JSON.parse(readFileSync(file, 'utf8'))
const types = join(out, 'src/types')
const own = readFileSync(join(types, 'api.ts'), 'utf8')
write(join(types, 'published.ts'), own)
write(join(types, 'described.ts'), await openapiTS(description))
write(join(types, 'api.ts'), `import type { paths as described } from './described.js'
import type { paths as published } from './published.js'
export type paths = described & Omit<published, keyof described>
`)
const routes = Object.keys(description.paths)
write(join(out, 'src/routes/index.ts'), `export const routes = ${JSON.stringify(routes, null, 2)};`)
const known = [...own.matchAll(/^  "(\/[^"]*)": \{$/gm)].map((match) => match[1])
for (const route of known) if (!routes.includes(route)) console.log(route)
