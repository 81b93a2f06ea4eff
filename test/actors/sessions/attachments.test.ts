/**
 * Files of a session: reservation, storage, display and erasure. Also the context that results of
 * actions add, and the thresholds of compactions.
 */
import fc from 'fast-check'
import t from 'tap'
import type { Attached } from '../../../protocol/sessions/attachments.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import { begun, definition, message, Story, say, tool, use } from './story.ts'

type Open = Record<string, unknown>
const facts = (more: Open = {}): Open => ({
  name: 'plan.png',
  mime_type: 'image/png',
  size_bytes: 10,
  sha256: 'ab',
  as: 'image',
  ...more,
})
/** Creates a session without a running turn. */
function resting(): Story {
  const s = begun()
  s.answers(say('x'))
  return s
}
const replyOf = <T>(s: Story): T => s.last?.reply as T
/** Reserves a file. Returns its id, or the code of the refusal. */
function announced(s: Story, more: Open = {}, file: Open = facts()): string {
  const refused = s.do('attachment.reserve', {
    file,
    hash: String(file['sha256']),
    organization: 'org_1',
    ...more,
  })
  return refused ?? replyOf<{ artifact_id: string }>(s).artifact_id
}
function attached(s: Story, more: Open = {}, file: Open = facts()): Attached {
  const artifact_id = announced(s, more, file)
  s.do('session.attach', { artifact_id })
  return replyOf<Attached>(s)
}
const show = (artifact_id: unknown, type = 'image'): Open => ({
  type,
  source: { type: 'artifact', artifact_id },
})
/**
 * Returns the names of the objects that the last command erased, and of those that actors of
 * artifacts erased since the previous call of this function.
 */
const erased = (s: Story): readonly string[] =>
  [...(s.last?.effects ?? []), ...s.artifactEffects.splice(0)].flatMap((effect) =>
    'erase' in effect ? effect.erase : [],
  )

t.test('a file is reserved, stored, listed and shown', async (t) => {
  const s = resting()
  const id = announced(s)
  t.match(id, /^art_/)
  t.same(s.session.ask('attachments'), { items: [] }, 'nothing is there before its bytes are')
  t.equal(s.session.ask('attachment', { artifact_id: id }), null)
  t.equal(s.invoke('look', { input: { content: [say('look'), show(id)] } }), 'bad_request')
  s.do('session.attach', { artifact_id: id })
  const { artifact, content_block } = replyOf<Attached>(s)
  t.notOk('status_code' in replyOf<Open>(s))
  t.match(artifact, {
    id,
    visibility: 'shared',
    name: 'plan.png',
    mime_type: 'image/png',
    size_bytes: 10,
    sha256: 'ab',
    created_by: 'user_1',
  })
  t.same(content_block, {
    type: 'image',
    source: { type: 'artifact', artifact_id: id },
    media_type: 'image/png',
    title: 'plan.png',
    size_bytes: 10,
  })
  t.match(s.session.ask('attachments'), { items: [{ id }] })
  t.match(s.session.ask('attachment', { artifact_id: id }), { id })
  s.do('session.attach', { artifact_id: id })
  t.match(
    [s.last?.events, s.last?.reply],
    [[], { artifact: { id }, status_code: 200 }],
    'a repeat changes nothing',
  )
  t.equal(
    s.invoke('look', {
      input: { content: [say('look'), { ...show(id), title: 'mine', size_bytes: 99 }] },
    }),
    undefined,
  )
  const { request } = s.spec(s.job()) as { request: { messages: { content: Open[] }[] } }
  t.match(
    request.messages.at(-1)?.content,
    [
      say('look'),
      {
        type: 'image',
        source: { type: 'artifact', artifact_id: id },
        title: 'mine',
        size_bytes: 10,
      },
    ],
    'the size comes from the service',
  )
})

t.test('only files of this session can be shown, and only with their own type', async (t) => {
  const s = resting()
  const {
    artifact: { id },
  } = attached(s)
  for (const [block, said] of [
    [show('art_other'), /is not an attachment/],
    [show(id, 'document'), /type image/],
    [show('__proto__'), /is not an attachment/],
  ] as const) {
    t.equal(s.invoke('look', { input: { content: [say('a'), block] } }), 'bad_request')
    t.match(s.last?.refused, {
      details: { fields: [{ field: 'input.content[1].source.artifact_id', message: said }] },
    })
    t.equal(
      s.do('session.append', { messages: [{ role: 'user', content: [block] }] }),
      'bad_request',
    )
    t.match(s.last?.refused, {
      details: { fields: [{ field: 'messages[0].content[0].source.artifact_id' }] },
    })
  }
  t.equal(s.do('session.append', { messages: [{ role: 'user', content: [show(id)] }] }), undefined)
})

t.test('an upload key is valid for one file of one caller', async (t) => {
  const s = resting()
  const first = attached(s, { key: 'user_1 k' })
  t.equal(announced(s, { key: 'user_1 k' }), first.artifact.id)
  t.match(s.last?.reply, { attached: { artifact: { id: first.artifact.id } } })
  t.equal(announced(s, { key: 'user_1 k' }, facts({ sha256: 'cd' })), 'conflict')
  t.not(announced(s, { key: 'user_2 k' }), first.artifact.id)
  const half = announced(s, { key: 'user_1 half' })
  t.equal(announced(s, { key: 'user_1 half' }), half, 'an unfinished upload continues')
  t.notOk(replyOf<Open>(s)['attached'])
  s.do('session.detach', { artifact_id: first.artifact.id })
  t.equal(announced(s, { key: 'user_1 k' }), 'conflict')
})

t.test('a deleted file is erased once, and messages that showed it name it', async (t) => {
  const s = resting()
  const {
    artifact: { id },
  } = attached(s)
  s.invoke('look', { input: { content: [say('look'), show(id)] } })
  t.equal(s.do('session.detach', { artifact_id: 'art_none' }), 'not_found')
  t.equal(s.do('session.detach', { artifact_id: announced(s) }), 'conflict', 'it is on its way')
  t.equal(s.do('session.detach', { artifact_id: id }), undefined)
  t.same(erased(s), [`file/prj_1/${id}`, `file/prj_1/${id}.md`])
  t.equal(s.do('session.detach', { artifact_id: id }), undefined)
  t.same(s.last?.events, [])
  const { request } = s.spec(s.job()) as { request: { messages: { content: Open[] }[] } }
  t.match(request.messages.at(-1)?.content.at(-1), {
    type: 'text',
    text: /image "plan.png", image\/png, 10 bytes: it was deleted/,
  })
  t.equal(s.do('session.attach', { artifact_id: id }), 'conflict')
})

t.test(
  'files whose bytes never arrive are dropped; the files of an ended session are erased',
  async (t) => {
    const s = resting()
    const [kept, late] = [attached(s).artifact.id, announced(s)]
    t.equal(s.session.deadline(), s.at + limits.file.awaited)
    s.pass(limits.file.awaited)
    s.do('wake', {})
    t.same(erased(s), [`file/prj_1/${late}`, `file/prj_1/${late}.md`])
    t.equal(s.do('session.attach', { artifact_id: late }), 'conflict')
    t.equal(s.session.deadline(), undefined)
    const other = announced(s)
    s.do('session.delete', {})
    t.same(
      erased(s),
      [kept, other].flatMap((one) => [`file/prj_1/${one}`, `file/prj_1/${one}.md`]),
    )
    t.equal(s.session.ask('attachments'), null)
    t.equal(announced(s), 'not_found')

    const kind = begun('hi', { session: { retention: { mode: 'bounded', ttl_seconds: 3600 } } })
    kind.answers(say('x'))
    const {
      artifact: { id },
    } = attached(kind)
    kind.pass(3_600_000)
    kind.do('wake', {})
    t.same(erased(kind), [`file/prj_1/${id}`, `file/prj_1/${id}.md`])
  },
)

t.test('the number of files is limited, and an erased file makes room', async (t) => {
  const s = resting()
  const ids = Array.from({ length: limits.file.most }, (_, n) =>
    n === 0 ? attached(s).artifact.id : announced(s),
  )
  t.equal(announced(s), 'conflict')
  s.do('session.detach', { artifact_id: ids[0] })
  t.match(announced(s), /^art_/)
})

t.test('in every history, a file is either stored or erased', async () => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('announce' as const),
        key: fc.option(fc.nat(2), { nil: undefined }),
        hash: fc.nat(1),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constantFrom('attach' as const, 'attach' as const, 'detach' as const),
        which: fc.nat(8),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(limits.file.awaited) }),
    },
    { weight: 1, arbitrary: fc.constant({ do: 'delete' as const }) },
  )
  void fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const s = resting()
      const known: string[] = []
      const acknowledged = new Set<string>()
      for (const one of steps) {
        if (one.do === 'announce') {
          const id = announced(s, {
            hash: String(one.hash),
            ...(one.key !== undefined && { key: `k${one.key}` }),
          })
          if (id.startsWith('art_') && !known.includes(id)) known.push(id)
        } else if (one.do === 'pass') {
          s.pass(one.ms)
          s.do('wake', {})
        } else if (one.do === 'delete') s.do('session.delete', {})
        else {
          const artifact_id = known[one.which % Math.max(1, known.length)] ?? 'art_none'
          const refused = s.do(`session.${one.do}`, { artifact_id })
          if (refused === undefined)
            acknowledged[one.do === 'attach' ? 'add' : 'delete'](artifact_id)
        }
        const kept = Object.values(s.session.state.attachments ?? {})
          .filter(({ state }) => state !== 'erased')
          .map(({ artifact }) => artifact.id)
        const gone = s.log.flatMap((event) => (event.type === 'attachment.erased' ? event.ids : []))
        if (new Set(gone).size !== gone.length) throw new Error('erased twice')
        for (const id of known)
          if (kept.includes(id) === gone.includes(id))
            throw new Error(`${id} is ${kept.includes(id) ? 'kept and erased' : 'forgotten'}`)
        if (s.session.state.gone) acknowledged.clear()
        const listed =
          (s.session.ask('attachments') as { items: { id: string }[] } | null)?.items.map(
            ({ id }) => id,
          ) ?? []
        if (listed.length !== acknowledged.size || !listed.every((id) => acknowledged.has(id)))
          throw new Error(`listed ${listed.join()}, acknowledged ${[...acknowledged].join()}`)
      }
    }),
    { numRuns: 100 },
  )
})

t.test(
  'context from the result of an action is stored after the result, if it is new',
  async (t) => {
    const tools = definition([tool('board.move', {}, { kind: 'http' })])
    const s = begun('go', { input: { context: [{ name: 'board', content: 'one' }] } }, tools)
    s.settle(s.job(), {
      outcome: 'completed',
      result: message([use('a', 'board_move', {}), use('b', 'board_move', { n: 2 })]),
    })
    const [first, second] = [...s.jobs.values()]
    s.settle(second ?? { id: '' }, {
      outcome: 'completed',
      result: {},
      context: [
        { name: 'board', content: 'three' },
        { name: 'user', content: 'ann' },
      ],
    })
    s.settle(first ?? { id: '' }, {
      outcome: 'completed',
      result: {},
      context: [{ name: 'board', content: 'two' }],
    })
    const { request } = s.spec(s.job()) as {
      request: { messages: { role: string; content: Open[] }[] }
    }
    const last = request.messages.at(-1)?.content.map(({ type, text }) => text ?? type)
    t.same(
      last,
      [
        'tool_result',
        'tool_result',
        '<reminder name="app-board" tier="contextual">\nthree\n</reminder>',
        '<reminder name="app-user" tier="contextual">\nann\n</reminder>',
      ],
      'for each name the last call counts',
    )
    const before = s.log.length
    s.settle(s.job(), { outcome: 'completed', result: message([use('c', 'board_move', { n: 3 })]) })
    s.settle(s.job('action_execution'), {
      outcome: 'completed',
      result: {},
      context: [{ name: 'board', content: 'three' }],
    })
    t.notOk(s.types(before).includes('context.stored'), 'known context is not stored again')
    s.answers(say('done'))
    t.equal(s.turn().status, 'completed')
  },
)

t.test("a compaction threshold of the session replaces the agent's threshold", async (t) => {
  const at = (policy: Open) => ({
    root: 'ses_1',
    generation: 0,
    session_key: 'default',
    agent_id: 'agt_1',
    agent_name: 'Bot',
    compaction_policy: policy,
  })
  for (const [own, given, both] of [
    [
      { threshold_tokens: 5000, strategy: 'auto' },
      { threshold: 'lg' },
      { threshold: 'lg', strategy: 'auto' },
    ],
    [{ threshold: 'lg' }, { threshold_tokens: 5000 }, { threshold_tokens: 5000, strategy: 'auto' }],
    [{}, {}, { threshold: 'sm', strategy: 'auto' }],
    [{ threshold: 'lg' }, { strategy: 'manual' }, { threshold: 'lg', strategy: 'manual' }],
  ] as const) {
    const s = new Story()
    s.do('session.create', { agent_id: 'agt_1', compaction_policy: given, place: at(own) })
    t.same(s.session.state.record?.compaction_policy, both)
  }
})
