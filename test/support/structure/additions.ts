/** Sample additions, exactly as the table "Where to add what" in CONTRIBUTING.md describes them. */
import type { Edit } from './scratch-copy.ts'

export interface Addition {
  /** The rows of the table that describe the addition. The first row states the number of lines. */
  readonly rows: readonly [string, ...string[]]
  readonly edits: readonly Edit[]
}

export const additions: readonly Addition[] = [
  {
    rows: ['an endpoint', 'a command of an actor'],
    edits: [
      {
        file: 'protocol/sample/rows.ts',
        content: `/** Samples. */
import { Type } from 'typebox'
import { Closed } from '../common.ts'
import { command } from '../contract.ts'

export const samples = {
  'sample.take': command('POST /projects/:project/agents/:id/samples', {
    summary: 'Take a sample of the memory of an agent',
    tag: 'memory',
    permission: 'project.edit',
    to: { kind: 'memory', slot: 'id', prefix: 'agent' },
    body: Closed({ size: Type.Integer() }),
    reply: Type.Object({ taken: Type.Integer() }),
  }),
} as const
`,
      },
      {
        file: 'protocol/api.ts',
        after: "import { runs } from './runs/rows.ts'",
        lines: ["import { samples } from './sample/rows.ts'"],
      },
      { file: 'protocol/api.ts', after: 'export const api = {', lines: ['  ...samples,'] },
      {
        file: 'actors/memory/memory.ts',
        after: '  decide: {',
        lines: [
          "    'sample.take': (_, { size }) => ({ events: [], reply: { taken: size + 1 } }),",
        ],
      },
    ],
  },
  {
    rows: ['an actor kind', 'a command of an actor'],
    edits: [
      {
        file: 'protocol/sample/schema.ts',
        content: `/** Events and commands of samples. */
import type { Event } from '../entry.ts'

export type SampleEvent = Event & { readonly type: 'sample.grown'; readonly by: number }
export type SampleCommands = { 'sample.grow': { input: { by: number }; reply: undefined } }
`,
      },
      {
        file: 'actors/sample/sample.ts',
        content: `/** A sample, which grows. */
import type { Api } from '../../protocol/api.ts'
import type { SampleCommands, SampleEvent } from '../../protocol/sample/schema.ts'
import type { Actor } from '../actor.ts'

interface SampleState {
  size: number
}
export const sample: Actor<SampleState, SampleEvent, Api, 'sample', SampleCommands> = {
  kind: 'sample',
  initial: () => ({ size: 0 }),
  decide: {
    'sample.grow': (_, { by }) => ({ events: [{ type: 'sample.grown', by }], reply: undefined }),
  },
  evolve: { 'sample.grown': ({ size }, { by }) => ({ size: size + by }) },
}
`,
      },
      {
        file: 'protocol/entry.ts',
        after: 'const facts = {',
        lines: ["  sample: { prefix: 'smp' },"],
      },
      {
        file: 'actors/kinds.ts',
        after: "import { run } from './runs/run.ts'",
        lines: ["import { sample } from './sample/sample.ts'"],
      },
      {
        file: 'actors/kinds.ts',
        after: '}): Readonly<Record<Kind, AnyActor>> => ({',
        lines: ['  sample: defineActor(sample),'],
      },
    ],
  },
  {
    rows: ['a view table and its query'],
    edits: [
      {
        file: 'views/tables/sample/view.ts',
        content: `/** The view of samples. */
import { defineView } from '../../define-view.ts'

export const samples = defineView({
  kinds: {
    sample: (store, { entry: { project, events } }) =>
      store.run('INSERT INTO samples VALUES (?, ?)', store.numberOf(project), events.length),
  },
  tables: 'CREATE TABLE samples (project INTEGER NOT NULL, events INTEGER NOT NULL);',
  queries: {
    sample_events: ({ store, project }) =>
      store.one<{ count: number }>(
        'SELECT sum(events) AS count FROM samples WHERE project = ?',
        project,
      ) ?? { count: 0 },
  },
})
`,
      },
      {
        file: 'protocol/queries/views.ts',
        after: 'interface InternalQueries extends TableQueries, SemanticQueries, StreamQueries {',
        lines: ['  sample_events: { input: Record<never, never>; reply: { count: number } }'],
      },
      {
        file: 'views/views.ts',
        after: "import { runs } from './tables/runs/view.ts'",
        lines: ["import { samples } from './tables/sample/view.ts'"],
      },
      { file: 'views/views.ts', after: 'const views = [', lines: ['  samples,'] },
      {
        file: 'views/files/migrate.ts',
        replace: 'export const SCHEMA_VERSION = ',
        lines: ['export const SCHEMA_VERSION = 1000'],
      },
    ],
  },
  {
    rows: ['a setting'],
    edits: [
      {
        file: 'nodes/config/settings.ts',
        after: 'export const table = {',
        lines: ["  BATON_SAMPLE_SIZE: setting('1', integer(0, 10), 'Size of samples'),"],
      },
      {
        file: 'nodes/config.ts',
        after: 'export interface Config {',
        lines: ['  readonly sample_size: number'],
      },
      {
        file: 'nodes/config.ts',
        after: '    config: {',
        lines: ['      sample_size: v.BATON_SAMPLE_SIZE,'],
      },
      {
        file: 'docs/operations/configuration.md',
        after: '| `BATON_HOST`',
        lines: ['| `BATON_SAMPLE_SIZE` | `1` | Size of samples |'],
      },
    ],
  },
]

/** A module for the root of the copy. It uses each addition and prints the results as JSON. */
export const probe = `
import Database from 'better-sqlite3'
import { actorKinds } from './actors/kinds.ts'
import { evolve } from './actors/actor.ts'
import { readConfig } from './nodes/config.ts'
import { kindPrefixes, kinds } from './protocol/entry.ts'
import { openapi } from './protocol/openapi/document.ts'
import { defaultTiming } from './protocol/workers/timing.ts'
import { migrate } from './views/files/migrate.ts'
import { Store } from './views/store.ts'
import { armsOf, queryOf } from './views/views.ts'

const actors = actorKinds({ brand: 'Baton', timing: defaultTiming })
const { memory, sample } = actors
const [grown] = sample.decide['sample.grow'](sample.initial(), { by: 2 }, {}).events
const db = new Database(':memory:')
migrate(db)
const store = new Store(db)
for (const arm of armsOf('sample')) arm(store, { cursor: 1, entry: { project: 'prj_1', events: [grown] } })
const read = (env, argv = []) => readConfig(env, argv).config?.sample_size
console.log(
  JSON.stringify({
    operation: Object.values(openapi({ brand: 'Baton', version: '1' }).paths)
      .flatMap((path) => Object.values(path))
      .find(({ operationId }) => operationId === 'sample.take')?.summary,
    reply: memory.decide['sample.take'](memory.initial(), { size: 1 }, {}).reply,
    kind: kinds.includes('sample') && kindPrefixes.sample,
    state: evolve(sample, sample.initial(), grown, 0),
    rows: queryOf('sample_events')({ store, project: store.numberOf('prj_1') }, {}),
    settings: [read({}), read({ BATON_SAMPLE_SIZE: '7' }), read({}, ['--sample-size', '8'])],
  }),
)
`
