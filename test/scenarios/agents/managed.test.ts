/**
 * Managed model routes: real requests to a provider stub in a separate process, including several
 * kinds of provider failure.
 */
import t from 'tap'
import type { Log } from '../../../gateway/ports.ts'
import { service } from '../../support/service.ts'
import { type Found, listOf } from '../support/given.ts'
import { provider } from '../support/servers/provider.ts'
import { invoke, placeOf, said, turnIn } from '../support/talk.ts'

t.setTimeout(120_000)
const logged: string[] = []
const note = (fields: object, message: string) =>
  void logged.push(JSON.stringify({ ...fields, message }))
const log: Log = { debug: note, info: note, warn: note, error: note }
const there = await provider()
const s = await service({ BATON_MODELS: there.setting, BATON_LOG_LEVEL: 'debug' }, { log })
t.teardown(() => s.stop())
t.teardown(() => there.close())

type Open = Record<string, unknown>
let plays = 0
/** Returns a user message that makes the stub return these answers in order. */
const play = (...answers: Open[]): string => JSON.stringify({ play: answers, id: `p${++plays}` })
const agentOf = (name: string, more: Open = {}): Promise<Found> =>
  s.ok('agent.create', {
    name,
    model: 'stub/small',
    system_prompt: 'Be brief.',
    tool_presentation: 'flat',
    ...more,
  })
const blocks = async (ack: Found): Promise<Open[]> =>
  listOf(await s.ok('session.turn_messages', { turn_id: placeOf(ack).turn_id })).flatMap(
    ({ content }) => content as unknown as Open[],
  )

t.test(
  "a provider's model returns text, thinking and usage; a worker with a model of that name gets no job",
  async (t) => {
    const worker = await s.worker({
      models: [{ provider: 'stub', model: 'small' }],
      action_names: ['nothing'],
    })
    worker.send({ type: 'jobs.claim', message_id: 'mine', available_slots: 1 })
    const agent = await agentOf('talker', { thinking_effort: 'max' })
    const ack = await invoke(
      s,
      agent,
      play({
        think: 'Let me see.',
        say: 'All hosts are green.',
        usage: {
          prompt_tokens: 100,
          completion_tokens: 40,
          total_tokens: 140,
          prompt_tokens_details: { cached_tokens: 64 },
          completion_tokens_details: { reasoning_tokens: 12 },
        },
      }),
    )
    t.match(await turnIn(s, ack, 'completed', 'failed'), {
      status: 'completed',
      usage: {
        input_tokens: 36,
        output_tokens: 40,
        cache_read_input_tokens: 64,
        reasoning_tokens: 12,
        calls: 1,
      },
    })
    t.match((await blocks(ack)).slice(1), [
      { type: 'thinking', thinking: 'Let me see.', provider: 'stub' },
      { type: 'text', text: 'All hosts are green.' },
    ])
    const [asked] = await there.seen()
    t.match(asked, {
      path: '/v1/chat/completions',
      authorization: `Bearer ${there.key}`,
      body: {
        model: 'small',
        stream: true,
        reasoning_effort: 'high',
        messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user' }],
      },
    })
    t.match(await s.ok('session.get', { session_id: placeOf(ack).session_id }), {
      model: 'small',
      model_provider: 'stub',
      token_input_total: 36,
      cache_read_input_total: 64,
    })
    t.notOk(worker.frames.some(({ type }) => type === 'jobs.claimed' || type === 'work.available'))
    worker.close()
  },
)

t.test(
  "parallel tool calls arrive in chunks, and their results are sent back under the provider's tool names",
  async (t) => {
    const worker = await s.worker({ action_names: ['hosts.check'] })
    const agent = await agentOf('caller')
    await s.ok('agent.assign_toolkits', {
      id: agent['id'],
      toolkit_ids: [
        (
          await s.ok('toolkit.create', {
            name: 'hosts',
            actions: [{ selector_type: 'exact', selector: 'hosts.check' }],
          })
        )['id'],
      ],
    })
    const ack = await invoke(
      s,
      agent,
      play(
        {
          say: 'One moment.',
          calls: [
            { id: 'call_a', name: 'hosts_check', pieces: ['{"en', 'v":"', 'live"}'] },
            { id: 'call_b', name: 'hosts_check', pieces: ['{}'] },
          ],
        },
        { say: 'Done.' },
      ),
    )
    for (let n = 0; n < 2; n++) {
      const job = await worker.job()
      await worker.report(job, {
        status: 'completed',
        result: { of: (job['spec'] as unknown as Open)['parameters'] },
      })
    }
    t.match(await turnIn(s, ack, 'completed', 'failed'), {
      status: 'completed',
      usage: { calls: 2 },
    })
    t.equal((await said(s, ack)).at(-1), 'assistant: Done.')
    const { body } = (await there.seen()).at(-1) ?? { body: {} }
    const messages = (body as Open)['messages'] as Open[]
    t.match(messages.slice(-3), [
      {
        role: 'assistant',
        content: 'One moment.',
        tool_calls: [
          { id: 'call_a', function: { name: 'hosts_check', arguments: '{"env":"live"}' } },
          { id: 'call_b' },
        ],
      },
      { role: 'tool', tool_call_id: 'call_a', content: '{"of":{"env":"live"}}' },
      { role: 'tool', tool_call_id: 'call_b' },
    ])
    t.match((body as Open)['tools'], [
      { type: 'function', function: { name: 'hosts_check' } },
      { function: { name: 'service_ask_person' } },
    ])
    worker.close()
  },
)

t.test('transient provider failures are retried, and the answer is complete', async (t) => {
  const agent = await agentOf('patient')
  const tries: readonly (readonly [string, Open])[] = [
    ['dropped in the middle', { say: 'A rather long answer that breaks off.', cut: 3 }],
    ['ended without a word', { say: 'Another long answer that just ends.', stop: 3 }],
    ['no JSON', { say: 'This one is garbled in the middle.', garbage: 3 }],
    ['silent', { say: 'This one stops moving.', silent: 2 }],
    ['429', { status: 429, headers: { 'retry-after': '1' } }],
    ['500', { status: 500 }],
    [
      'arguments that are no object',
      { calls: [{ id: 'call_x', name: 'service_ask_person', pieces: ['{"title": "br'] }] },
    ],
  ]
  for (const [what, broken] of tries) {
    const began = Date.now()
    const ack = await invoke(s, agent, play(broken, { say: 'Whole.' }))
    t.match(
      await turnIn(s, ack, 'completed', 'failed'),
      { status: 'completed', usage: { calls: 1 } },
      what,
    )
    t.equal((await said(s, ack)).at(-1), 'assistant: Whole.', what)
    if (what === '429') t.ok(Date.now() - began >= 1000, 'the retry waited for Retry-After')
  }
})

t.test(
  "permanent failures end the turn with an error type, and the provider's key is never disclosed",
  async (t) => {
    const agent = await agentOf('unlucky')
    const ends = async (name: string, told: string | Open, match: Open) =>
      t.match(
        await turnIn(
          s,
          await invoke(
            s,
            typeof told === 'string' ? agent : await s.ok('agent.create', { name, ...told }),
            typeof told === 'string' ? told : 'hello',
          ),
          'failed',
          'completed',
        ),
        match,
        name,
      )
    await ends('refused', play({ status: 401 }), {
      status: 'failed',
      error_type: 'provider_refused',
      error_message: /401/,
    })
    await ends('busy for ever', play({ status: 503 }), { error_type: 'provider_error' })
    await ends('unreachable', { model: 'gone/lost' }, { error_type: 'provider_unreachable' })
    await ends(
      'without a key',
      { model: 'keyless/claude' },
      { error_type: 'credentials_unavailable' },
    )
    const long = await invoke(s, agent, play({ say: 'cut', finish: 'length' }))
    t.match(await turnIn(s, long, 'completed', 'failed'), { status: 'completed' })
    t.ok(
      logged.some((line) => line.includes('generation_ended')),
      'generations are logged',
    )
    t.notMatch(logged.join('\n'), there.key)
    for (const row of ['session.turns', 'session.messages'] as const)
      t.notMatch(
        JSON.stringify(await s.ok(row, { session_id: placeOf(long).session_id })),
        there.key,
      )
  },
)

t.test('cancelling a turn ends its provider request', async (t) => {
  const agent = await agentOf('stopped')
  const ack = await invoke(s, agent, play({ say: 'never', silent: 1 }))
  await turnIn(s, ack, 'running')
  await s.ok('session.cancel_turn', placeOf(ack))
  t.match(await turnIn(s, ack, 'cancelled'), { status: 'cancelled' })
})
