/** Who may import whom, what may not be spoken where, and how long a file may be. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..')
const folders = ['protocol', 'actors', 'gateway', 'views', 'nodes', 'client'] as const
/** Per folder: the project folders and the packages it may import. */
const may: Record<(typeof folders)[number], { folders: readonly string[]; packages: RegExp }> = {
  protocol: { folders: ['protocol'], packages: /^typebox(\/|$)|^@marcbachmann\/cel-js$|^croner$/ },
  actors: { folders: ['actors', 'protocol'], packages: /^$/ },
  gateway: {
    folders: ['gateway', 'protocol'],
    packages:
      /^node:|^uWebSockets\.js$|^typebox(\/|$)|^rate-limiter-flexible$|^yaml$|^@cfworker\/json-schema$/,
  },
  views: { folders: ['views', 'protocol'], packages: /^node:|^better-sqlite3$/ },
  nodes: {
    folders: ['nodes', 'actors', 'gateway', 'views', 'protocol', 'client'],
    packages:
      /^node:|^@nats-io\/|^pino$|^prom-client$|^commander$|^nodemailer$|^typebox\/value$|^typebox$|^ai$|^@ai-sdk\/|^yaml$|^ipaddr\.js$|^@oxc-node\/core$|^esbuild$/,
  },
  client: {
    folders: ['client', 'protocol'],
    packages: /^node:|^ws$|^eventsource-parser|^commander$|^cli-progress$/,
  },
}
/** Words that break a folder's promise, each with the reason. */
const never: Partial<Record<string, readonly [RegExp, string]>> = {
  actors: [
    /\b(Date\.now|new Date|Math\.random|setTimeout|setInterval|process\.|async |await |Promise)\b/,
    'actors are pure: time, ids and randomness arrive in the cause',
  ],
  protocol: [
    /\b(Date\.now|new Date\(\)|Math\.random|setTimeout|process\.|async |await )/,
    'the protocol is words, it does nothing',
  ],
  gateway: [/process\.env|@nats-io/, 'the edge knows the world only through its ports'],
  views: [/process\.env|@nats-io/, 'views know the world only through their ports'],
}
/** The only places where a package with many corners may be touched. */
const onlyIn: readonly (readonly [RegExp, RegExp])[] = [
  [/['"]uWebSockets\.js['"]/, /^gateway\//],
  [/['"]@nats-io\//, /^nodes\/nats\//],
  [/['"]better-sqlite3['"]/, /^views\//],
  [/['"]croner['"]/, /^protocol\/schedule\.ts$/],
  [/['"]nodemailer['"]/, /^nodes\/notify\//],
  // Front matter of skills and scripts of the scripted model, and nothing else that clients send, are YAML.
  [/['"]yaml['"]/, /^gateway\/front-matter\.ts$|^nodes\/executor\/scripted\/read\.ts$/],
  // Providers of models are spoken to in one place.
  [/['"](ai|@ai-sdk\/[a-z-]+)['"]/, /^nodes\/executor\/models\//],
  [/['"]ipaddr\.js['"]/, /^nodes\/outbound\//],
  [/['"]@cfworker\/json-schema['"]/, /^gateway\/schema\.ts$/],
  // Browsers are given the modules of the pages without types.
  [/['"]@oxc-node\/core['"]/, /^nodes\/browser\.ts$/],
  [/['"]esbuild['"]/, /^nodes\/boot\/program\.mjs$/],
  [/process\.env/, /^nodes\/|^client\/cli\//],
]

/** What makes the program one file names the packages that stay outside of it; it uses none. */
const names = 'nodes/boot/program.mjs'

const files = [...folders, 'test', 'bench'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|mjs)$/.test(name) && !name.includes('node_modules'))
    .map((name) => join(folder, name)),
)
const code = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*/g, '')

t.test('every folder imports only what it may', async (t) => {
  for (const file of files) {
    const folder = file.split('/')[0] as (typeof folders)[number]
    const rule = may[folder]
    if (!rule) continue
    const text = code(readFileSync(join(root, file), 'utf8'))
    const imports = [...text.matchAll(/(?<!\.)\b(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(
      (match) => match[1] ?? '',
    )
    const bad = imports.filter((name) => {
      if (!name.startsWith('.')) return !rule.packages.test(name)
      const target = relative(root, normalize(join(root, dirname(file), name)))
      return !rule.folders.includes(target.split('/')[0] ?? '')
    })
    t.strictSame(bad, [], file)
  }
})

t.test('no folder speaks words that break its promise', async (t) => {
  for (const file of files) {
    const text = code(readFileSync(join(root, file), 'utf8'))
    const rule = never[file.split('/')[0] ?? '']
    if (rule) t.notMatch(text, rule[0], `${file}: ${rule[1]}`)
    if (/^(test|bench)\//.test(file)) continue
    for (const [word, where] of onlyIn)
      if (!where.test(file) && file !== names)
        t.notMatch(text, word, `${file} does not touch ${word.source}`)
  }
})

t.test('every file stays under 300 lines', async (t) => {
  for (const file of files)
    t.ok(readFileSync(join(root, file), 'utf8').split('\n').length <= 300, file)
})
