/**
 * Architecture rules: imports between folders, forbidden code per folder, where packages may be
 * used, and sizes of lines, files and folders.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..')
const folders = ['protocol', 'actors', 'gateway', 'views', 'nodes', 'client', 'console'] as const
/** For each folder, the project folders and the packages that it may import. */
const may: Record<(typeof folders)[number], { folders: readonly string[]; packages: RegExp }> = {
  protocol: { folders: ['protocol'], packages: /^typebox(\/|$)|^@marcbachmann\/cel-js$|^croner$/ },
  actors: { folders: ['actors', 'protocol'], packages: /^$/ },
  gateway: {
    folders: ['gateway', 'protocol'],
    packages: /^node:|^uWebSockets\.js$|^typebox(\/|$)|^rate-limiter-flexible$|^yaml$|^fflate$/,
  },
  views: { folders: ['views', 'protocol'], packages: /^node:|^better-sqlite3$|^sqlite-vec$/ },
  nodes: {
    folders: ['nodes', 'actors', 'gateway', 'views', 'protocol', 'client'],
    packages: new RegExp(
      [
        /^node:|^@nats-io\/|^pino$|^prom-client$|^commander$|^yaml$|^ipaddr\.js$/,
        /^nodemailer$|^smtp-server$|^mailparser$|^mailauth$/,
        /^typebox$|^typebox\/value$|^ai$|^@ai-sdk\//,
        /^mammoth$|^htmlparser2$|^fflate$|^saxes$/,
        /^@oxc-node\/core$|^esbuild$|^tar\/header$|^@aws-sdk\/(client-s3|lib-storage)$/,
        /^@octokit\/auth-app$|^openid-client$/,
      ]
        .map(({ source }) => source)
        .join('|'),
    ),
  },
  console: {
    folders: ['console', 'client', 'protocol'],
    packages: new RegExp(
      [
        /^preact(\/hooks)?$|^@preact\/signals$|^uplot$|^@dagrejs\/dagre$|^eventsource-parser/,
        /^@codemirror\/[a-z-]+$|^@lezer\/highlight$|^yaml$|^@xterm\/(xterm|addon-fit)$/,
      ]
        .map(({ source }) => source)
        .join('|'),
    ),
  },
  client: {
    folders: ['client', 'protocol'],
    packages: new RegExp(
      [
        /^node:|^ws$|^eventsource-parser|^commander$|^cli-progress$|^cli-table3$|^yaml$|^marked$/,
        /^csv-parse$|^csv-stringify\/sync$|^mime$|^@lydell\/node-pty$/,
      ]
        .map(({ source }) => source)
        .join('|'),
    ),
  },
}
/** Patterns of code that the files of a folder may not contain, each with the reason. */
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
  console: [
    /\b(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|eval|new Function)\b/,
    'content of users is never parsed as HTML or executed',
  ],
}
/** Packages and features, each with the only files that may use it. */
const onlyIn: readonly (readonly [RegExp, RegExp])[] = [
  [/['"]uWebSockets\.js['"]/, /^gateway\//],
  [/['"]@nats-io\//, /^nodes\/nats\//],
  [/['"]better-sqlite3['"]/, /^views\//],
  [/['"]sqlite-vec['"]/, /^views\/tables\/tables\/vectors\/distance\.ts$/],
  [/['"]croner['"]/, /^protocol\/rules\/schedule\.ts$/],
  [/['"]nodemailer['"]/, /^nodes\/notify\//],
  [/['"](smtp-server|mailparser|mailauth)['"]/, /^nodes\/mail\//],
  // The service parses only the front matter of skills and the scripts of the scripted model as
  // YAML. The command line and the editor of the console read and write YAML.
  [
    /from ['"]yaml['"]/,
    new RegExp(
      [
        /^client\/cli\/(output|blueprints\/(yaml|write))\.ts$/,
        /^gateway\/files\/yaml\.ts$|^console\/editor\/yaml\.ts$/,
      ]
        .map(({ source }) => source)
        .join('|'),
    ),
  ],
  [/['"](mammoth|saxes)['"]/, /^nodes\/executor\/documents\//],
  [/['"]htmlparser2['"]/, /^nodes\/(executor\/documents\/|mail\/plain-text\.ts$)/],
  [/['"]fflate['"]/, /^nodes\/executor\/documents\/|^gateway\/files\/office\.ts$/],
  // Model providers are called only from one folder.
  [/['"](ai|@ai-sdk\/[a-z-]+)['"]/, /^nodes\/executor\/models\//],
  [/['"]@octokit\/auth-app['"]/, /^nodes\/repositories\//],
  [/['"]ipaddr\.js['"]/, /^nodes\/outbound\//],
  [/['"]openid-client['"]/, /^nodes\/outbound\/oidc\//],
  [/['"]tar\/header['"]/, /^nodes\/backup\/tar\.ts$/],
  [/['"]csv-(parse|stringify)/, /^client\/cli\/tables\//],
  [/from ['"]mime['"]/, /^client\/(cli|environment)\/(artifacts|actions)\//],
  [/['"]@lydell\/node-pty['"]/, /^client\/environment\/terminal\.ts$/],
  // The chat page and the console render Markdown with one parser.
  [/['"]marked['"]/, /^client\/chat\/markdown\.ts$/],
  // Only one file strips the types from the modules that browsers load.
  [/['"]@oxc-node\/core['"]/, /^nodes\/browser\.ts$/],
  [/['"]esbuild['"]/, /^nodes\/(boot\/(program|test-bundle)\.mjs|console\.ts)$/],
  // `console/api/call-text.ts` generates example programs, whose text reads `process.env`.
  [/process\.env/, /^nodes\/|^client\/cli\/|^console\/api\/call-text\.ts$/],
  // The signal that `AbortSignal.any` returns can be garbage-collected before it aborts.
  [/AbortSignal\.any/, /^client\/watchdog\.ts$/],
]

/**
 * This file may name every package: it lists the packages that are not bundled, but imports none.
 */
const names = 'nodes/boot/program.mjs'

const files = [...folders, 'test', 'bench'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(tsx?|mjs)$/.test(name) && !name.includes('node_modules'))
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
    const imports = [...text.matchAll(/(?<![.'"])\b(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(
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

t.test('no folder contains code that breaks its rules', async (t) => {
  for (const file of files) {
    const text = code(readFileSync(join(root, file), 'utf8'))
    const rule = never[file.split('/')[0] ?? '']
    if (rule) t.notOk(rule[0].test(text), `${file}: ${rule[1]}`)
    if (/^(test|bench)\//.test(file)) continue
    for (const [word, where] of onlyIn)
      if (!where.test(file) && file !== names)
        t.notOk(word.test(text), `${file} does not touch ${word.source}`)
  }
})

/**
 * Limits of the files that exceed the general limit, in lines. A limit may only decrease. Split
 * such a file when you work on it.
 */
const long: Readonly<Record<string, number>> = {
  'test/actors/interactions/interaction.test.ts': 450,
  'test/actors/jobs/queue.test.ts': 550,
  'test/actors/projects/rights.test.ts': 600,
  'test/actors/runs/agent.test.ts': 500,
  'test/actors/runs/model.test.ts': 650,
  'test/gateway/streams/follow.test.ts': 500,
  'test/gateway/http/http.test.ts': 650,
  'test/gateway/workers/socket-claims.test.ts': 450,
  'test/gateway/workers/socket-jobs.test.ts': 500,
  'test/gateway/workers/socket.test.ts': 500,
  'test/gateway/sessions/transcript-world.ts': 500,
  'test/host/shard/shard.test.ts': 450,
  'test/protocol/definition.test.ts': 450,
  'test/protocol/language.test.ts': 600,
  'test/scenarios/actions/actions.test.ts': 650,
  'test/scenarios/agents/agent-steps.test.ts': 550,
  'test/scenarios/agents/agents.test.ts': 450,
  'test/scenarios/sessions/attachments.test.ts': 600,
  'test/scenarios/channels/channels-visibility.test.ts': 500,
  'test/scenarios/channels/channels.test.ts': 550,
  'test/scenarios/events/events.test.ts': 450,
  'test/scenarios/interactions/interactions.test.ts': 850,
  'test/scenarios/access/isolation.test.ts': 550,
  'test/scenarios/loops/loops-policies.test.ts': 550,
  'test/scenarios/mcp/mcp.test.ts': 650,
  'test/scenarios/access/people.test.ts': 500,
  'test/scenarios/runs/runs.test.ts': 500,
  'test/scenarios/sessions/sessions.test.ts': 800,
  'test/scenarios/agents/toolkits.test.ts': 500,
  'test/scenarios/sessions/transcripts.test.ts': 600,
  'test/support/service.ts': 500,
  'test/views/tables/configuration.test.ts': 450,
}

/** The maximum number of files in a folder. The limit makes every folder easy to survey. */
const MAX_FILES = 15
t.test(`every folder has at most ${MAX_FILES} files`, async (t) => {
  const counts = new Map<string, number>()
  // `bench/` has one file per benchmark.
  for (const file of files.filter((name) => dirname(name) !== 'bench'))
    counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1)
  for (const [folder, count] of counts) t.ok(count <= MAX_FILES, `${folder} has ${count}`)
})

t.test('every file has at most 400 formatted lines', async (t) => {
  for (const file of files) {
    const lines = readFileSync(join(root, file), 'utf8').split('\n').length
    t.ok(lines <= (long[file] ?? 400), `${file} has ${lines}`)
  }
})

/**
 * The maximum width of a line, in columns. It exceeds the width of the formatter, which does not
 * break string literals, templates, regular expressions or comments.
 */
const MAX_COLUMNS = 120
t.test(`no line of source is wider than ${MAX_COLUMNS} columns`, async (t) => {
  for (const file of files) {
    const found = readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => ([...line].length > MAX_COLUMNS ? [index + 1] : []))
    t.strictSame(found, [], file)
  }
})
