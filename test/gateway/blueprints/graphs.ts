/**
 * Random blueprints: graphs of resources of all types, and changes made outside of blueprints.
 *
 * A resource has one of a few keys. Its name follows from its key and a choice between two names,
 * so names are unique in a request and no two resources swap names.
 */
import fc from 'fast-check'
import type { ResourceTypeName } from '../../../protocol/blueprints/resources.ts'

/** Generates undefined or one of the values, all equally likely. */
const maybe = <T>(...values: T[]): fc.Arbitrary<T | undefined> =>
  fc.constantFrom<T | undefined>(undefined, ...values)
const texts = maybe('', 'one', 'two')
const tags = maybe<object>({}, { team: 'a' }, { team: 'b', tier: '1' })
const present = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T
const fields = (model: Record<string, fc.Arbitrary<unknown>>) => fc.record(model).map(present)

/** Returns a loop without settings of an HTTP trigger that it does not have. They are refused. */
function withoutUnknownTriggers(loop: Record<string, unknown>): Record<string, unknown> {
  if (JSON.stringify(loop['triggers'] ?? []).includes('"form"')) return loop
  const { settings, ...others } = loop
  return JSON.stringify(settings ?? {}).includes('"form"') ? others : loop
}

const keys = ['a', 'b', 'c'] as const
type Fields = Readonly<Record<string, unknown>>
interface Drawn {
  readonly key: string
  readonly other: boolean
  readonly fields: Fields
}
/** Generates at most `maxLength` resources of one type, with distinct keys. */
const some = (model: fc.Arbitrary<Fields>, maxLength = 3): fc.Arbitrary<Drawn[]> =>
  fc.uniqueArray(fc.record({ key: fc.constantFrom(...keys), other: fc.boolean(), fields: model }), {
    selector: ({ key }) => key,
    maxLength,
  })
const column = (name: string, more: object = {}) => ({ name, type: 'string', ...more })
const columns = [column('id', { required: true }), column('title')]
const schema = (...more: object[]) => ({ columns: [...columns, ...more], identity_column: 'id' })
const stepOf = (action_name: string) => ({ id: 'work', kind: 'action', config: { action_name } })

const models = {
  tables: fields({
    description: texts,
    instructions: texts,
    schema: fc.constantFrom(schema(), schema(column('body'))),
  }),
  actions: fields({
    title: texts,
    description: texts,
    input_schema: maybe<object>({}, { type: 'object' }),
    annotations: maybe<object>({}, { read_only: true, long_running: true }),
    tags,
  }),
  skills: fields({
    title: texts,
    description: texts,
    instructions: texts,
    allowed_tools: maybe<string[]>([], ['crm.*'], ['b', 'a']),
    tags,
  }),
  roles: fields({
    permissions: fc.constantFrom(
      ['service.project.view'],
      ['service.work.execute', 'service.project.view'],
    ),
    description: texts,
    tags,
  }),
  webhooks: fields({
    url: fc.constantFrom('https://hooks.example/in?token=one', 'https://hooks.example/in'),
    events: fc.constantFrom(['run.*'], ['run.failed', 'turn.*']),
    enabled: maybe(true, false),
    tags,
  }),
  environments: fields({ tags }),
  toolkits: fields({
    description: texts,
    metadata: maybe<object>({}, { owner: 'desk' }),
    actions: maybe<object[]>(
      [],
      [{ selector: 'work.a' }],
      [{ action_name: 'work.b' }, { selector_type: 'group', selector: 'crm' }],
    ),
    tags,
  }),
  agents: fields({
    description: texts,
    color: maybe('', 'teal'),
    model: maybe('', 'small'),
    tool_presentation: maybe('meta', 'flat'),
    system_prompt: texts,
    timeout_seconds: maybe(0, 60),
    status: maybe('active', 'inactive'),
    compaction_policy: maybe<object>(
      { strategy: 'none' },
      { strategy: 'auto', threshold: 'lg' },
      { threshold_tokens: 5000 },
    ),
    thinking_effort: maybe('inherit', 'high'),
    tags,
  }),
  workflows: fields({
    description: texts,
    published_as_tool: maybe(true, false),
    spec: fc.constantFrom({ steps: [stepOf('work.a')] }, { steps: [stepOf('work.b')] }),
    tags,
  }),
  loops: fields({
    description: texts,
    status: maybe('draft', 'active', 'paused'),
    steps: fc.constantFrom([stepOf('work.a')], [stepOf('work.b')]),
    triggers: maybe<object[]>(
      [],
      [{ kind: 'manual', key: 'hand' }],
      [
        { kind: 'http', key: 'form' },
        { kind: 'event', config: { event_type: 'ticket.created' } },
      ],
    ),
    settings: maybe<object>({}, { http_triggers: { form: { signing_secret: 'a secret of it' } } }),
    concurrency: maybe('allow', 'queue'),
    default_config: maybe<object>({}, { color: 'red' }),
    tags,
  }).map(withoutUnknownTriggers),
  channels: fields({ display_name: maybe('', 'One', 'Two'), topic: texts }),
} as const satisfies Record<string, fc.Arbitrary<Fields>>
type ArrayName = keyof typeof models

/**
 * For each array of a request, a function that returns the name of a resource and the fields that
 * its type requires.
 */
const nameOf: Readonly<Record<ArrayName, (key: string, other: boolean) => Fields>> = {
  tables: (key, other) => ({ name: `table_${key}${other ? '_2' : ''}` }),
  actions: (key) => ({ name: `work.${key}`, type: 'worker' }),
  skills: (key, other) => ({ name: `Skill ${key}${other ? ' 2' : ''}` }),
  roles: (key) => ({ name: `role ${key}` }),
  webhooks: (key, other) => ({ name: `hook-${key}${other ? '-2' : ''}` }),
  environments: (key) => ({ name: `env-${key}`, provider: 'local' }),
  toolkits: (key, other) => ({ name: `Kit ${key}${other ? ' 2' : ''}` }),
  agents: (key, other) => ({ name: `agent ${key}${other ? ' 2' : ''}` }),
  workflows: (key, other) => ({ name: `Flow ${other ? 2 : 1}`, handle: `flow-${key}` }),
  loops: (key, other) => ({ name: `Loop ${key}${other ? ' 2' : ''}` }),
  channels: (key) => ({ name: `channel-${key}` }),
}

interface Resource extends Fields {
  readonly key: string
}
type Resources = { readonly [A in ArrayName]?: readonly Resource[] }
export interface Request {
  readonly blueprint_version?: string
  readonly protect_resources?: boolean
  readonly resources: Resources
}

/** A random request. It refers to its own resources by their keys. */
export const requests: fc.Arbitrary<Request> = fc
  .record({
    drawn: fc.record({
      tables: some(models.tables, 2),
      actions: some(models.actions, 2),
      skills: some(models.skills),
      roles: some(models.roles, 1),
      webhooks: some(models.webhooks, 2),
      environments: some(models.environments, 1),
      toolkits: some(models.toolkits),
      agents: some(models.agents),
      workflows: some(models.workflows, 1),
      loops: some(models.loops, 2),
      channels: some(models.channels, 1),
    }),
    refers: fc.array(fc.nat(), { minLength: 12, maxLength: 12 }),
    blueprint_version: maybe('1', '2'),
    protect_resources: maybe(true, false),
  })
  .map(({ drawn, refers, ...more }) => {
    const resources = Object.fromEntries(
      (Object.keys(drawn) as ArrayName[]).map((array) => [
        array,
        drawn[array].map(
          ({ key, other, fields }): Resource => ({
            key,
            ...nameOf[array](key, other),
            ...fields,
          }),
        ),
      ]),
    ) as { [A in ArrayName]: Resource[] }
    let next = 0
    /** Returns some of the resources in some order, or undefined. */
    const referred = (to: readonly Resource[]): object[] | undefined => {
      const choice = refers[next++ % refers.length] ?? 0
      if (choice % 4 === 0) return undefined
      const list = to.filter((_, index) => (choice >> (index + 2)) % 2 === 0)
      return (choice % 2 === 0 ? list.reverse() : list).map(({ key }) => ({ key }))
    }
    return present({
      ...more,
      resources: {
        ...resources,
        agents: resources.agents.map((agent) =>
          present({
            ...agent,
            toolkits: referred(resources.toolkits),
            skills: referred(resources.skills),
          }),
        ),
        loops: resources.loops.map((loop) =>
          present({ ...loop, agent: referred(resources.agents)?.[0] }),
        ),
      },
    }) as Request
  })

/** A change that an ordinary request makes outside of blueprints. */
export interface Outside {
  readonly effect: 'create' | 'change' | 'delete'
  readonly type: ResourceTypeName
  /** Determines the name of the resource to create. */
  readonly key: string
  /** The position of the existing resource to change or delete. */
  readonly nth: number
}
const outside: fc.Arbitrary<Outside> = fc.record({
  effect: fc.constantFrom('create', 'change', 'delete'),
  type: fc.constantFrom<ResourceTypeName>(
    'table',
    'action',
    'skill',
    'role',
    'webhook',
    'toolkit',
    'agent',
    'workflow',
    'loop',
    'channel',
    'environment',
  ),
  key: fc.constantFrom(...keys),
  nth: fc.nat({ max: 5 }),
})
export const outsides = fc.array(outside, { maxLength: 4 })

export const bodyOf = ({ type, key }: Outside): Readonly<Record<string, unknown>> => {
  const name = (array: ArrayName) => nameOf[array](key, false)
  switch (type) {
    case 'table':
      return { ...name('tables'), schema: schema() }
    case 'action': {
      const { type: endpoint_kind, ...rest } = name('actions')
      return { ...rest, endpoint_kind }
    }
    case 'skill':
      return { ...name('skills'), instructions: 'before', description: 'before' }
    case 'role':
      return { ...name('roles'), permissions: ['service.work.execute'] }
    case 'webhook':
      return { ...name('webhooks'), url: 'https://before.example/', events: ['run.*'] }
    case 'toolkit':
      return { ...name('toolkits'), description: 'before' }
    case 'agent':
      return { ...name('agents'), description: 'before', timeout_seconds: 30 }
    case 'workflow':
      return { ...name('workflows'), spec: { steps: [stepOf('work.c')] } }
    case 'loop':
      return { ...name('loops'), steps: [stepOf('work.c')], status: 'active' }
    case 'channel':
      return name('channels')
    default:
      return name('environments')
  }
}
export const changeOf = (type: ResourceTypeName, record: Fields): Fields =>
  ({
    table: { description: 'outside' },
    action: { description: 'outside' },
    skill: { name: record['name'], instructions: 'outside' },
    role: { description: 'outside' },
    webhook: { enabled: false },
    toolkit: { name: record['name'], description: 'outside' },
    agent: { description: 'outside', system_prompt: 'outside' },
    workflow: { description: 'outside' },
    loop: { description: 'outside', status: 'paused' },
    channel: { topic: 'outside' },
    environment: { tags: { team: 'outside' } },
    secret: {},
  })[type]
