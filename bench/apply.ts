/**
 * Measures a blueprint of many resources: the time of its plan, of its first apply, of an apply
 * that changes nothing, of an apply that changes a tenth of the resources, and of its deletion.
 * `--size` sets the number of resources.
 */
import { startBaton } from './support/baton.ts'
import { type Figures, inTurn, SYNCS, type Terms, withEachSync } from './support/measure.ts'
import { note, table, whole } from './support/table.ts'

export const about = 'Plan, apply and delete a blueprint of 1,000 resources'

const BLUEPRINTS = '/v1/projects/default/blueprints'
/**
 * The fraction of the resources that has each type. The types are in the order in which they are
 * applied.
 */
const SHARES = {
  tables: 0.1,
  actions: 0.25,
  skills: 0.15,
  toolkits: 0.1,
  agents: 0.2,
  loops: 0.2,
} as const
const schema = {
  identity_column: 'number',
  columns: [
    { name: 'number', type: 'string', required: true },
    { name: 'text', type: 'string' },
  ],
}

/** Returns the resources of the blueprint. `version` changes every tenth resource. */
function resourcesOf(size: number, version: number): object {
  const text = (i: number) => `Text of resource ${i}, version ${i % 10 === 0 ? version : 1}`
  const make = {
    tables: (i: number) => ({ name: `table_${i}`, description: text(i), schema }),
    actions: (i: number) => ({
      name: `action.number-${i}`,
      type: 'worker',
      description: text(i),
      input_schema: { type: 'object', properties: { order: { type: 'integer' } } },
    }),
    skills: (i: number) => ({ name: `Skill ${i}`, instructions: text(i).repeat(20) }),
    toolkits: (i: number) => ({
      name: `Toolkit ${i}`,
      description: text(i),
      actions: [{ selector: `action.number-${i}` }],
    }),
    agents: (i: number) => ({
      name: `agent-${i}`,
      description: text(i),
      system_prompt: text(i).repeat(20),
      toolkits: [{ key: `toolkits-${i % Math.max(1, Math.floor(size * SHARES.toolkits))}` }],
      skills: [{ key: `skills-${i % Math.max(1, Math.floor(size * SHARES.skills))}` }],
    }),
    loops: (i: number) => ({
      name: `Loop ${i}`,
      description: text(i),
      agent: { key: `agents-${i % Math.max(1, Math.floor(size * SHARES.agents))}` },
      triggers: [{ key: 'hand', kind: 'manual' }],
      steps: [{ id: 'work', kind: 'action', config: { action_name: 'action.number-0' } }],
    }),
  }
  return Object.fromEntries(
    Object.entries(SHARES).map(([type, share]) => [
      type,
      Array.from({ length: Math.floor(size * share) }, (_, i) => ({
        key: `${type}-${i}`,
        ...make[type as keyof typeof make](i),
      })),
    ]),
  )
}

/** Measures one server with an empty store. Times are in milliseconds. */
async function measure(sync: string, size: number, profile: string | undefined): Promise<Figures> {
  const server = await startBaton({ sync, profile })
  const send = async (method: string, path: string, body?: object): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${BLUEPRINTS}${path}`, {
      method,
      headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`answered ${answer.status}: ${text.slice(0, 300)}`)
  }
  const times: Record<string, number> = {}
  const timed = async (name: string, act: () => Promise<unknown>) => {
    const started = performance.now()
    await act()
    times[name] = performance.now() - started
  }
  const apply = (version: number, mode: string) =>
    send('POST', '/apply', { blueprint_key: 'bench', mode, resources: resourcesOf(size, version) })
  try {
    await timed('plan', () => apply(1, 'preview'))
    await timed('apply', () => apply(1, 'apply'))
    await timed('plan of no change', () => apply(1, 'preview'))
    await timed('apply of no change', () => apply(1, 'apply'))
    await timed('apply of a tenth', () => apply(2, 'apply'))
    await timed('deletion', () => send('DELETE', '/bench'))
    return times
  } finally {
    await server.stop()
  }
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const size = terms.size ?? (terms.quick ? 100 : 1000)
  const runs = await inTurn(
    withEachSync((sync) => measure(sync, size, terms.profile)),
    terms,
    (all) => `planned in ${whole(all['plan'] ?? 0)} ms, applied in ${whole(all['apply'] ?? 0)} ms`,
  )
  const names = Object.keys(runs[0]?.[1] ?? {})
  return (
    table(
      [`a blueprint of ${whole(size)} resources, ms`, ...SYNCS.map(([name]) => name)],
      [
        ...names.map((name) => [
          name,
          ...SYNCS.map((_, run) => whole(runs[run]?.[1][name] ?? Number.NaN)),
        ]),
        ['*target (1,000 resources)*', 'plan ≤ 1,000, apply ≤ 5,000', ''],
      ],
    ) +
    note(
      'Tables 10 %, worker actions 25 %, skills 15 %, toolkits 10 %, agents 20 %, loops 20 %.',
      'One client sends the whole blueprint in one request; the load and the server share the cores.',
    )
  )
}
