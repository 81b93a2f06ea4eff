/**
 * The scripted model in isolation: its answers depend only on the script, the conversation and the
 * attempt, and scripts behave as documented.
 */
import fc from 'fast-check'
import t from 'tap'
import { factsOf } from '../../../nodes/executor/scripted/conversation.ts'
import { scriptedModel } from '../../../nodes/executor/scripted/model.ts'
import { play } from '../../../nodes/executor/scripted/play.ts'
import { readScript } from '../../../nodes/executor/scripted/read.ts'
import type { Script } from '../../../nodes/executor/scripted/script.ts'
import { fill, fillAll, scopeOf, starsIn } from '../../../nodes/executor/scripted/template.ts'
import type { Delta, ModelRequest } from '../../../nodes/executor/speech.ts'
import type { ModelMessage } from '../../../protocol/sessions/turns/request.ts'

type Open = Record<string, unknown>
const person = (...said: string[]): ModelMessage => ({
  role: 'user',
  content: said.map((text) => ({ type: 'text', text })),
})
const uses = (...calls: [string, string, Open?][]): ModelMessage => ({
  role: 'assistant',
  content: calls.map(([id, name, input = {}]) => ({ type: 'tool_use', id, name, input })),
})
const gave = (...results: [string, string, boolean?][]): ModelMessage => ({
  role: 'user',
  content: results.map(([tool_use_id, content, is_error]) => ({
    type: 'tool_result',
    tool_use_id,
    content,
    ...(is_error && { is_error }),
  })),
})
const request = (messages: readonly ModelMessage[], ...tools: string[]): ModelRequest => ({
  model: 'scripted',
  messages,
  tools: tools.map((name) => ({ name, input_schema: {} })),
})
const script = (text: string): Script => {
  const read = readScript(text)
  if ('wrong' in read) throw new Error(read.wrong)
  return read
}
const says = (text: string, messages: readonly ModelMessage[], attempt = 1, ...tools: string[]) =>
  play(script(text), request(messages, ...tools), attempt, 'j1')
const textIn = ({ message }: ReturnType<typeof play>) =>
  message.content.map((block) => block['text'] ?? block['name']).join('|')

t.test(
  'the whole instructions or a fenced block are the script; without one, the model echoes',
  async (t) => {
    const yaml = 'script:\n  - say: hi\n'
    t.strictSame(script(yaml), [{ say: 'hi' }])
    t.strictSame(script(`# a comment\n${yaml}`), [{ say: 'hi' }])
    t.strictSame(script(`You are kind.\n\n\`\`\`yaml\n${yaml}\`\`\`\nAnd brief.`), [{ say: 'hi' }])
    t.equal(textIn(says('You are kind.', [person('hello')])), 'You said: hello')
    t.match(readScript('script: ['), { wrong: /is not YAML/ })
    t.match(readScript('script:\n  - sey: hi\n'), { wrong: /script\/0/ })
    t.match(readScript('script: []\n'), { wrong: /script/ })
  },
)

t.test('the time to find a script is linear, whatever the instructions contain', async (t) => {
  const two = '```\nscript :\n```\n```yaml\ntext\n```\n``` yaml\n```yml \nscript:\n  - say: hi\n```'
  t.match(readScript(two), { wrong: /script/ }, 'the first block that begins like a script')
  t.strictSame(script(two.slice(two.indexOf('``` yaml'))), [{ say: 'hi' }])
  t.equal(textIn(says('```yaml\nscript:\n  - say: hi\n', [person('open')])), 'You said: open')
  const cost = (text: string): number => {
    const before = process.cpuUsage()
    readScript(text)
    return process.cpuUsage(before).user
  }
  const closed = '```yaml\n```\n'.repeat(10_000)
  cost(closed)
  t.ok(cost('```yaml\n'.repeat(15_000)) < 10 * cost(closed) + 50_000, 'many open fences')
})

t.test('conditions: text, turn, step, tools and their results', async (t) => {
  const talk = `
script:
  - when: {text: "deploy * to *", step: 1}
    call: {hosts.check: {env: "{{2}}", what: "{{1}}"}}
  - when: {after: hosts.check, result: "*\\"ok\\":true*"}
    say: "{{result.hosts.0.name}} is fine"
  - when: {after: hosts.check, error: true}
    say: "broken: {{result}}"
  - when: {turn: 2}
    say: "again: {{text}}"
  - when: Hello
    say: "hi {{step}}"
`
  t.match(says(talk, [person('Deploy the site to live')], 1, 'hosts_check').message.content, [
    {
      type: 'tool_use',
      id: 'call_j1_1',
      name: 'hosts_check',
      input: { env: 'live', what: 'the site' },
    },
  ])
  t.match(
    says(talk, [person('deploy a to b')], 1, 'hosts').message.content,
    [{ name: 'hosts', input: { command: 'check', args: { env: 'b', what: 'a' } } }],
    'through a router',
  )
  const used = uses(['c1', 'hosts_check'])
  t.equal(
    textIn(says(talk, [person('x'), used, gave(['c1', '{"ok":true,"hosts":[{"name":"n1"}]}'])])),
    'n1 is fine',
  )
  t.equal(
    textIn(
      says(talk, [
        person('x'),
        uses(['c1', 'hosts', { command: 'check' }]),
        gave(['c1', 'no disk', true]),
      ]),
    ),
    'broken: no disk',
  )
  t.equal(
    textIn(
      says(talk, [
        person('hello'),
        { role: 'assistant', content: [{ type: 'text', text: 'hi' }] },
        person('more'),
      ]),
    ),
    'again: more',
  )
  t.equal(textIn(says(talk, [person('HELLO')])), 'hi 1')
  t.match(textIn(says(talk, [person('what?')])), /No rule of the script matches: turn 1, step 1/)
})

t.test('reminders of the service do not count as text of a person; directions do', async (t) => {
  const aside = '<reminder name="context" tier="contextual">\nit rains\n</reminder>'
  const direction = '<reminder name="user-direction" tier="contextual">\nstop\n</reminder>'
  t.match(factsOf([person(aside, 'go')]), { text: 'go', turn: 1, step: 1 })
  t.match(
    factsOf([
      person('go'),
      uses(['c', 'x']),
      { role: 'user', content: [...gave(['c', 'r']).content, ...person(direction).content] },
    ]),
    { text: 'stop', turn: 1, step: 2, results: [{ tool: 'x', text: 'r', error: false }] },
  )
})

t.test(
  'failures apply to the first attempts; a broken connection shows the first half',
  async (t) => {
    const busy = 'script:\n  - fail: {as: 429, times: 2, retry_after: 3s}\n    say: now\n'
    t.match(says(busy, [person('x')], 2), {
      fault: { is: 'rate_limited', retry_after: 3000 },
      chunks: [],
    })
    t.equal(says(busy, [person('x')], 3).fault, undefined)
    t.match(says('script:\n  - {fail: disconnect, say: abcdefgh, chunk: 2}\n', [person('x')]), {
      fault: { is: 'provider_unreachable' },
      chunks: [{ text: 'ab' }, { text: 'cd' }],
    })
    for (const [as, is] of [
      [500, 'provider_error'],
      [404, 'provider_refused'],
      ['timeout', 'provider_timeout'],
      ['malformed', 'invalid_response'],
    ] as const)
      t.equal(says(`script:\n  - fail: ${as}\n`, [person('x')], 9).fault?.is, is)
  },
)

t.test('thinking, several calls, deltas, stop reasons and usage', async (t) => {
  const many = play(
    script(
      'script:\n  - think: "Hm, {{turn}}."\n    say: Both.\n    chunk: 3\n    pace: 5ms\n' +
        '    delay: 1s\n    call: [{a: {n: 1}}, {a: {n: 2}}, {b: null}]\n' +
        '    usage: {input_tokens: 7}\n',
    ),
    request([person('x')], 'a', 'b'),
    1,
    'j1',
  )
  t.match(many, {
    delay: 1000,
    pace: 5,
    message: { stop_reason: 'tool_use', usage: { input_tokens: 7, output_tokens: Number } },
  })
  t.strictSame(
    many.message.content.map(({ type, id }) => id ?? type),
    ['thinking', 'text', 'call_j1_1', 'call_j1_2', 'call_j1_3'],
  )
  t.strictSame(
    many.chunks.map((chunk) => ('text' in chunk ? chunk.text : chunk.thinking)),
    ['Hm,', ' 1.', 'Bot', 'h.'],
  )
  t.equal(
    says('script:\n  - {say: x, stop: max_tokens}\n', [person('x')]).message.stop_reason,
    'max_tokens',
  )
})

t.test('templates keep the type of a single value, and only read members that exist', async (t) => {
  const scope = scopeOf(
    {
      text: 'T',
      turn: 3,
      step: 1,
      results: [
        { tool: 'a', text: '{"n":[1,{"x":true}]}', error: false },
        { tool: 'b', text: 'plain', error: false },
      ],
    },
    ['one'],
  )
  t.strictSame(
    fillAll(
      {
        a: '{{result.n.1.x}}',
        b: 'n is {{result.n.0}}',
        c: ['{{turn}}', '{{results.1}}'],
        d: '{{result.constructor.name}}',
        e: 7,
      },
      scope,
    ),
    { a: true, b: 'n is 1', c: [3, 'plain'], d: '', e: 7 },
  )
  t.equal(
    fill('{{1}} {{2}} {{result}} {{ text }} {{nothing}} {{toString}}', scope),
    'one  {"n":[1,{"x":true}]} T  ',
  )
})

t.test('stars match the text between their neighbours', async (t) => {
  t.strictSame(starsIn('a * b *', ' A x b y '), ['x', 'y'])
  t.equal(starsIn('a*', 'b'), undefined)
  t.strictSame(starsIn('*', 'anything'), ['anything'])
  void fc.assert(
    fc.property(
      fc.array(fc.stringMatching(/^[x-z ]{0,6}$/), { minLength: 1, maxLength: 5 }),
      fc.array(fc.stringMatching(/^[a-c]{1,4}$/), { minLength: 6, maxLength: 6 }),
      (stars, words) => {
        const text = words[0] + stars.map((star, index) => star + words[index + 1]).join('')
        const pattern = words[0] + stars.map((_, index) => `*${words[index + 1]}`).join('')
        t.strictSame(starsIn(pattern, text), stars)
      },
    ),
    { numRuns: 200 },
  )
})

t.test('a play depends only on the conversation and the attempt', async () => {
  const block = fc.oneof(
    fc.record({ type: fc.constant('text'), text: fc.string() }),
    fc.record({ type: fc.constant('tool_result'), tool_use_id: fc.string(), content: fc.string() }),
    fc.record({
      type: fc.constant('tool_use'),
      id: fc.string(),
      name: fc.string(),
      input: fc.object(),
    }),
  )
  const message = fc.record({
    role: fc.constantFrom('user' as const, 'assistant' as const),
    content: fc.array(block, { maxLength: 4 }),
  })
  const rules = script(
    'script:\n  - when: {text: "a*", step: 1}\n    say: "{{1}} {{result}}"\n' +
      '    call: {x.y: {all: "{{results}}"}}\n' +
      '  - {when: {after: "*"}, say: "{{result.a.b}}", fail: {as: 500, times: 1}}\n' +
      '  - say: "{{text}}{{turn}}{{step}}"\n',
  )
  void fc.assert(
    fc.property(
      fc.array(message, { maxLength: 8 }),
      fc.integer({ min: 1, max: 3 }),
      (messages, attempt) => {
        const made = request(messages as ModelMessage[], 'x')
        const once = JSON.stringify(play(rules, made, attempt, 'j'))
        return (
          once === JSON.stringify(play(rules, structuredClone(made), attempt, 'j')) &&
          !once.includes('undefined{')
        )
      },
    ),
  )
})

t.test('the speaker waits as the script says, and stops when it is aborted', async (t) => {
  const shown: Delta[] = []
  const waits: { ms: number; run: () => void }[] = []
  const speaker = scriptedModel((ms, run) => {
    const wait = { ms, run }
    waits.push(wait)
    return () => void waits.splice(waits.indexOf(wait), waits.includes(wait) ? 1 : 0)
  })
  const stop = new AbortController()
  const asked = {
    id: 'job_1',
    provider: 'service',
    model: 'scripted',
    attempt: 1,
    signal: stop.signal,
    show: (delta: Delta) => void shown.push(delta),
    request: {
      ...request([person('x')]),
      system: [
        {
          type: 'text' as const,
          text: 'script:\n  - {say: abcd, chunk: 2, delay: 1s, pace: 2s}\n',
        },
      ],
    },
  }
  const outcome = speaker(asked)
  t.strictSame(
    waits.map(({ ms }) => ms),
    [1000],
  )
  waits[0]?.run()
  await new Promise((soon) => setImmediate(soon))
  t.strictSame([shown, waits.map(({ ms }) => ms)], [[{ text: 'ab' }], [2000]])
  stop.abort()
  t.match(await outcome, { status: 'failed', error_type: 'stopped' })
  t.match(
    await scriptedModel(() => () => {})({
      ...asked,
      signal: new AbortController().signal,
      request: { ...asked.request, system: [{ type: 'text', text: 'script: 7' }] },
    }),
    { error_type: 'script_invalid', final: true },
  )
})

t.test('a script that fills an answer with too many characters fails', async (t) => {
  const answerTo = (rules: string, ...messages: ModelMessage[]) =>
    scriptedModel(() => () => {})({
      id: 'job_1',
      provider: 'service',
      model: 'scripted',
      attempt: 1,
      signal: new AbortController().signal,
      show: () => {},
      request: { ...request(messages, 'x'), system: [{ type: 'text', text: rules }] },
    })
  const tooLong = {
    status: 'failed',
    error_type: 'script_invalid',
    error_message: 'The script fills its texts with more than 1048576 characters.',
    final: true,
  }
  const long = person('x'.repeat(100_000))
  const result = gave(['c', JSON.stringify(['x'.repeat(100_000)])])
  const often = (text: string) => Array.from({ length: 20 }, () => text)
  t.match(await answerTo(`script:\n  - say: "${often('{{text}}').join('')}"\n`, long), tooLong)
  t.match(await answerTo(`script:\n  - think: "${often('{{text}}').join('')}"\n`, long), tooLong)
  for (const value of ['{{result}}', '{{result.0}}', '{{results}}', 'a {{result}}'])
    t.match(
      await answerTo(
        `script:\n  - call: {x: {all: ${JSON.stringify(often(value))}}}\n`,
        person('x'),
        uses(['c', 'x']),
        result,
      ),
      tooLong,
      value,
    )
  t.match(await answerTo(`script:\n  - say: "{{text}}{{text}}"\n`, long), { status: 'completed' })
})
