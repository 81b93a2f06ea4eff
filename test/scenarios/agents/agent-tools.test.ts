/**
 * Agent tools over the whole stack, with the scripted model: tools from toolkits are executed by
 * workers, endpoints and the service itself.
 */
import t from 'tap'
import { service, type TestWorker } from '../../support/service.ts'
import { ended, type Found, listOf, until } from '../support/given.ts'
import { receiver } from '../support/servers/receiver.ts'
import { invoke, placeOf, said, turnIn } from '../support/talk.ts'

const there = await receiver()
const s = await service({ BATON_OUTBOUND_ALLOW: '127.0.0.1/32' })
t.teardown(() => s.stop())
t.teardown(() => there.close())

type Open = Record<string, unknown>
const kit = async (name: string, actions: readonly string[]): Promise<string> =>
  String(
    (
      await s.ok('toolkit.create', {
        name,
        actions: actions.map((selector) => ({
          selector_type: selector.includes('*') ? 'wildcard' : 'exact',
          selector,
        })),
      })
    )['id'],
  )
/** Creates an agent with a script for the scripted model and a toolkit of these actions. */
async function agentWith(
  name: string,
  script: string,
  actions: readonly string[],
  more: Open = {},
): Promise<Found> {
  const agent = await s.ok('agent.create', { name, system_prompt: script, ...more })
  if (actions.length > 0)
    await s.ok('agent.assign_toolkits', {
      id: agent['id'],
      toolkit_ids: [await kit(name, actions)],
    })
  return agent
}
/**
 * Executes jobs with fixed results until the worker is closed. Returns the list of received jobs,
 * which grows as jobs arrive.
 */
function does(worker: TestWorker, results: Record<string, Open>): Open[] {
  const given: Open[] = []
  void (async () => {
    for (;;) {
      const job = await worker.job()
      given.push(job)
      await worker.report(job, {
        status: 'completed',
        result: results[String(job['action_name'])] ?? {},
      })
    }
  })().catch(() => {})
  return given
}
const blocks = async (ack: Found): Promise<Open[]> =>
  listOf(await s.ok('session.turn_messages', { turn_id: placeOf(ack).turn_id })).flatMap(
    ({ content }) => content as unknown as Open[],
  )

t.test(
  'a model calls a tool, a person approves the next one, and the model reports the result',
  async (t) => {
    await s.ok('action.create', {
      name: 'hosts.check',
      endpoint_kind: 'worker',
      description: 'Check hosts',
      annotations: { read_only: true },
      input_schema: { type: 'object', properties: { env: { type: 'string' } }, required: ['env'] },
    })
    await s.ok('action.create', {
      name: 'hosts.deploy',
      endpoint_kind: 'worker',
      annotations: { destructive: true },
    })
    const worker = await s.worker({ action_names: ['hosts.check', 'hosts.deploy'] })
    const given = does(worker, { 'hosts.check': { hosts: 3 }, 'hosts.deploy': { version: 'v7' } })
    const agent = await agentWith(
      'deployer',
      `
script:
  - when: {text: "deploy *", step: 1}
    say: Checking {{1}}.
    call: {hosts.check: {env: "{{1}}"}}
  - when: {after: hosts.check}
    call: {hosts.deploy: {count: "{{result.hosts}}"}}
  - when: {after: hosts.deploy, error: true}
    say: "Not done: {{result.approved}}"
  - when: {after: hosts.deploy}
    say: "{{result.version}} is out."
`,
      ['hosts.*'],
      { tool_presentation: 'flat' },
    )
    const ack = await invoke(s, agent, 'deploy staging')
    t.match(await turnIn(s, ack, 'waiting', 'failed'), { status: 'waiting' })
    t.match(given, [{ action_name: 'hosts.check', spec: { parameters: { env: 'staging' } } }])
    const [asked] = listOf(await s.ok('interaction.list', { session_id: placeOf(ack).session_id }))
    t.match(asked, {
      kind: 'request_approval',
      title: 'deployer wants to run hosts.deploy',
      context: { action: 'hosts.deploy', parameters: { count: 3 } },
    })
    t.equal(given.length, 1, 'no destructive call was started')
    await s.ok('interaction.respond', { id: asked?.['id'], value: true })
    t.match(await turnIn(s, ack, 'completed', 'failed'), {
      status: 'completed',
      usage: { calls: 3 },
    })
    t.strictSame(
      given.map(({ action_name }) => action_name),
      ['hosts.check', 'hosts.deploy'],
    )
    t.equal((await said(s, ack)).at(-1), 'assistant: v7 is out.')
    const again = await invoke(s, agent, 'deploy live')
    await turnIn(s, again, 'waiting')
    const [next] = listOf(
      await s.ok('interaction.list', { session_id: placeOf(again).session_id, status: 'pending' }),
    )
    await s.ok('interaction.respond', { id: next?.['id'], value: false })
    await turnIn(s, again, 'completed')
    t.equal((await said(s, again)).at(-1), 'assistant: Not done: false')
    t.equal(given.length, 3)
    worker.close()
  },
)

t.test('an endpoint receives signed calls on behalf of the agent, several at once', async (t) => {
  await s.ok('action.create', {
    name: 'crm.find',
    endpoint_url: `${there.url}/crm`,
    invocation_format: 'signed_context_v1',
    annotations: { idempotent: true },
  })
  there.answer = ({ body }, res) => {
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ found: (body as unknown as { parameters: Open }).parameters['who'] }))
  }
  const agent = await agentWith(
    'finder',
    `
script:
  - when: {step: 1}
    call:
      - crm.find: {who: Ada}
      - crm.find: {who: Bob}
  - say: "{{results.0.found}} and {{results.1.found}}"
`,
    ['crm.find'],
  )
  const ack = await invoke(s, agent, 'who?')
  t.match(await turnIn(s, ack, 'completed', 'failed'), { status: 'completed' })
  t.equal((await said(s, ack)).at(-1), 'assistant: Ada and Bob')
  t.equal(there.deliveries.length, 2)
  const { session_id, turn_id } = placeOf(ack)
  t.match(there.deliveries[0]?.body, {
    service: {
      actor: { principal_id: agent['id'], principal_type: 'agent', agent_id: agent['id'] },
      origin: {
        kind: 'agent_tool_call',
        session_id,
        agent_turn_id: turn_id,
        tool_call_id: /^call_/,
      },
    },
  })
  t.match((await blocks(ack))[1], {
    type: 'tool_use',
    name: 'crm',
    input: { command: 'find', args: { who: 'Ada' } },
    resolved_action: { name: 'crm.find', input: { who: 'Ada' } },
  })
  t.match(
    await until(
      () => s.ok('invocation.list', { action_name: 'crm.find' }),
      (page) => listOf(page).length === 2,
    ),
    {
      items: [
        { source: 'agent', status: 'success', agent_turn_id: turn_id, agent_id: agent['id'] },
        {},
      ],
    },
  )
  t.strictSame(
    new Set(
      listOf(await s.ok('invocation.list', { action_name: 'crm.find' })).map(
        ({ parameters }) => (parameters as unknown as Open)['who'],
      ),
    ),
    new Set(['Ada', 'Bob']),
  )
})

t.test('an agent saves, recalls and deletes memories across sessions', async (t) => {
  const agent = await agentWith(
    'keeper',
    `
script:
  - when: {text: "remember *", step: 1}
    call: {service.memory.remember: {key: note, content: "{{1}}", summary: "about {{1}}"}}
  - when: {text: recall, step: 1}
    call: {service.memory.recall: {}}
  - when: {text: forget, step: 1}
    call: {service.memory.forget: {key: note}}
  - say: "{{result}}"
`,
    ['service.memory.*'],
  )
  const say = async (words: string) => {
    const ack = await invoke(s, agent, words, { session: { mode: 'new' } })
    t.match(await turnIn(s, ack, 'completed', 'failed'), { status: 'completed' })
    return String((await said(s, ack)).at(-1))
  }
  t.equal(await say('remember tea'), 'assistant: {"key":"note","version":1}')
  t.match(await s.ok('memory.entries', { id: agent['id'] }), {
    items: [{ key: 'note', content: 'tea', summary: 'about tea' }],
  })
  t.match(await s.ok('memory.changes', { id: agent['id'] }), {
    items: [{ reason: 'remembered', actor_id: agent['id'] }],
  })
  t.match(await say('recall'), /"content":"tea"/)
  t.equal(await say('forget'), 'assistant: {"key":"note","forgotten":true}')
  t.match(await say('recall'), /"entries":\[\]/)
})

t.test("the model receives a summary of the agent's memories", async (t) => {
  const agent = await s.ok('agent.create', {
    name: 'mindful',
    model_route: { mode: 'worker', provider: 'local', model: 'mindful' },
  })
  await s.ok('memory.save', {
    id: agent['id'],
    memory_key: 'likes',
    content: 'green tea',
    summary: 'what Ada likes',
  })
  const model = await s.worker({
    models: [{ provider: 'local', model: 'mindful' }],
    action_names: ['nothing'],
  })
  const ack = await invoke(s, agent, 'hello')
  const job = await model.job()
  t.match(job['spec'], {
    request: {
      system: [{}, { text: '# What you remember, by key\n- likes (fact): what Ada likes' }],
    },
  })
  t.notMatch(JSON.stringify(job), 'green tea')
  await s.ok('session.cancel', { session_id: placeOf(ack).session_id })
  await s.ok('agent.update', { id: agent['id'], memory_context: { mode: 'full', max_bytes: 10 } })
  const full = await invoke(s, agent, 'hello', { session: { mode: 'new' } })
  t.match(await turnIn(s, full, 'failed'), { error_type: 'memory_context_too_large' })
  model.close()
})

t.test('an agent starts and reads runs, and calls published workflows', async (t) => {
  const spec = (output: Open) => ({
    input: { who: { type: 'string', required: true } },
    steps: [{ id: 'nap', kind: 'sleep', config: { duration: '10ms' } }],
    output,
  })
  await s.ok('workflow.create', {
    name: 'Greet',
    handle: 'greet',
    description: 'Greets',
    published_as_tool: true,
    spec: spec({ said: 'Hello, ${{ input.who }}' }),
  })
  const agent = await agentWith(
    'runner',
    `
script:
  - when: {text: call, step: 1}
    call: {workflow.greet: {who: Ada}}
  - when: {text: call}
    say: "{{result.output.said}}"
  - when: {text: badly, step: 1}
    call: {workflow.greet: {}}
  - when: {text: badly}
    say: "{{result}}"
  - when: {text: start, step: 1}
    call: {service.run.start: {workflow: greet, input: {who: Bob}}}
  - when: {text: start, step: 2}
    call: {service.run.get: {run_id: "{{result.run_id}}"}}
  - when: {text: start}
    say: "{{result.run_id}}"
`,
    ['workflow.greet', 'service.run.*'],
    { tool_presentation: 'flat' },
  )
  const say = async (words: string) => {
    const ack = await invoke(s, agent, words, { session: { mode: 'new' } })
    t.match(await turnIn(s, ack, 'completed', 'failed'), { status: 'completed' })
    return String((await said(s, ack)).at(-1)).replace('assistant: ', '')
  }
  t.equal(await say('call'), 'Hello, Ada')
  t.match(await say('badly'), /who/)
  const run = await s.ok('run.get', { id: await say('start') })
  t.match(run, { initiated_by: 'runner' })
  const runs = listOf(await s.ok('run.list', {}))
  t.equal(runs.length, 2)
})

t.test(
  'an agent has only the tools of its toolkits, and a loaded skill restricts them further',
  async (t) => {
    const agent = await agentWith(
      'narrow',
      `
script:
  - when: {text: stray, step: 1}
    call: {hosts_deploy: {}}
  - when: {text: narrow, step: 1}
    call: {invoke_skill: {name: checking}}
  - when: {text: narrow, step: 2}
    call: {crm.find: {who: Ada}}
  - say: "{{result}}"
`,
      ['hosts.check', 'crm.find'],
      { tool_presentation: 'flat' },
    )
    const skill = await s.ok('skill.create', {
      name: 'checking',
      instructions: 'Check first.',
      allowed_tools: ['hosts.*'],
    })
    await s.ok('agent.assign_skills', { id: agent['id'], skill_ids: [skill['id']] })
    const stray = await invoke(s, agent, 'stray')
    await turnIn(s, stray, 'completed')
    t.match((await said(s, stray)).at(-1), /There is no tool \\?"hosts_deploy/)
    const ack = await invoke(s, agent, 'narrow')
    await turnIn(s, ack, 'completed')
    t.match((await said(s, ack)).at(-1), /The skill checking does not allow crm.find/)
  },
)

t.test('a model submits an output that matches the schema, after an invalid attempt', async (t) => {
  const agent = await agentWith(
    'former',
    'script:\n  - when: {step: 1}\n    call: {submit: {n: "seven"}}\n  - when: {error: true}\n' +
      '    call: {submit: {n: 7}}\n',
    [],
  )
  const ack = await invoke(s, agent, 'go', {
    output: { schema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } },
  })
  t.match(await turnIn(s, ack, 'completed', 'failed'), {
    status: 'completed',
    output: { n: 7 },
    output_source: 'tool',
  })
})

t.test('tool calls in loop runs contain the loop id', async (t) => {
  const loop = await s.ok('loop.create', {
    name: 'Finds',
    agent_id: 'finder',
    steps: [{ id: 'ask', kind: 'agent', config: { instructions: 'who?' } }],
  })
  const run = await ended(s, (await s.ok('loop.start', { id: loop['id'] }))['id'])
  t.match(there.deliveries.at(-1)?.body, {
    service: {
      origin: { kind: 'agent_tool_call', run_id: run['id'], loop_id: loop['id'], step_key: 'ask' },
    },
  })
  t.match(await s.ok('invocation.list', { run_id: String(run['id']) }), {
    items: [{ loop_id: loop['id'], parameters: { who: /Ada|Bob/ } }, { loop_id: loop['id'] }],
  })
})
