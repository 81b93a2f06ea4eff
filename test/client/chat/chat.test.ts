/**
 * Entries of the chat page: their content and order, how new ones are announced, and the format of
 * times.
 */
import fc from 'fast-check'
import t from 'tap'
import { announcer } from '../../../client/chat/announcements.ts'
import { type Entry, entriesOf } from '../../../client/chat/entries.ts'
import { describeFile, describeReference, sizeText } from '../../../client/chat/files/describe.ts'
import { exactTime, shortTime } from '../../../client/chat/time.ts'
import { Transcript, type TranscriptFrame } from '../../../client/transcript.ts'

type Open = Record<string, unknown>
const at = (n: number): string => `2026-01-02T03:04:05.${String(n).padStart(3, '0')}Z`
const message = (
  id: string,
  role: string,
  content: readonly Open[],
  sequence: number | null,
  turn = 1,
): TranscriptFrame => ({
  event_type: 'message.upsert',
  id,
  session_id: 's',
  agent_id: 'a',
  turn_id: `turn${turn}`,
  role,
  content,
  entry_type: 'message',
  status: sequence === null ? 'streaming' : 'final',
  turn_index: 0,
  sequence,
  created_at: at(turn),
})
const turn = (n: number, status: string, more: Open = {}): TranscriptFrame => ({
  event_type: 'turn.upsert',
  id: `turn${n}`,
  agent_id: 'a',
  session_id: 's',
  attempt: 1,
  status,
  phase: null,
  created_at: at(n),
  updated_at: at(n),
  ...more,
})
const question = (id: string, call: string, status: string): TranscriptFrame => ({
  event_type: 'interaction.upsert',
  id,
  kind: 'request_approval',
  status,
  title: `May I ${id}?`,
  target_user_ids: ['u'],
  consumer: { kind: 'agent_tool', agent_tool: { invocation_id: 'turn1', tool_call_id: call } },
  resolution_policy: { type: 'any_of' },
  responses: [],
  lifecycle: [],
  created_at: at(1),
  updated_at: at(1),
})
const text = (said: string): Open => ({ type: 'text', text: said })
const use = (id: string): Open => ({ type: 'tool_use', id, name: 'act', input: {} })
const keys = (entries: readonly Entry[]): string[] =>
  entries.map(({ kind, key }) => `${kind} ${key}`)

t.test('messages, their questions, and the ends of turns', async (t) => {
  const transcript = new Transcript()
  const show = (...frames: readonly TranscriptFrame[]) => {
    for (const frame of frames) transcript.apply(frame)
    return entriesOf(transcript)
  }
  t.strictSame(
    keys(
      show(
        message('m1', 'user', [text('go')], 1),
        turn(1, 'running'),
        message('m2', 'assistant', [], null),
      ).entries,
    ),
    ['message m1', 'message m2'],
  )
  t.strictSame(
    keys(show(question('q1', 'c1', 'pending')).entries),
    ['message m1', 'message m2', 'question q1'],
    'a question whose call is not here yet comes last',
  )
  t.strictSame(
    keys(
      show(
        { event_type: 'message.block', message_id: 'm2', content_index: 0, block: use('c1') },
        question('q1', 'c1', 'completed'),
      ).entries,
    ),
    ['message m1', 'message m2', 'question q1'],
  )
  const { entries, results } = show(
    message('m2', 'assistant', [use('c1')], 2),
    message('m3', 'user', [{ type: 'tool_result', tool_use_id: 'c1', content: '{}' }], 3),
    message('m4', 'assistant', [text('Done.')], 4),
    turn(1, 'completed'),
  )
  t.strictSame(
    keys(entries),
    ['message m1', 'message m2', 'question q1', 'message m4', 'end end of turn1'],
    'a row of results is no message of its own',
  )
  t.match(results.get('c1'), { content: '{}' })
  t.strictSame(
    keys(
      show(
        message('m5', 'user', [text('again')], 5, 2),
        message('m6', 'assistant', [use('c2')], null, 2),
        question('q2', 'c2', 'pending'),
        turn(2, 'running'),
      ).entries,
    ).slice(-3),
    ['message m5', 'message m6', 'question q2'],
  )
  t.strictSame(
    keys(show(question('q2', 'c2', 'cancelled'), turn(2, 'cancelled')).entries).slice(-2),
    ['message m5', 'end end of turn2'],
    "a cancelled turn's incomplete rows and question are removed",
  )
})

t.test('rows never change their order, after any frames', async () => {
  void fc.assert(
    fc.property(
      fc.array(
        fc.tuple(
          fc.constantFrom('say', 'speak', 'grow', 'ask', 'settle', 'end'),
          fc.nat({ max: 3 }),
        ),
        { maxLength: 60 },
      ),
      (steps) => {
        const transcript = new Transcript()
        let [sequence, turns, rows] = [0, 0, 0]
        let open: { id: string; content: Open[] } | undefined
        let before: readonly string[] = []
        const apply = (frame: TranscriptFrame) => {
          transcript.apply(frame)
          const now = keys(entriesOf(transcript).entries)
          const both = now.filter((key) => before.includes(key))
          if (JSON.stringify(both) !== JSON.stringify(before.filter((key) => now.includes(key))))
            throw new Error(`${before.join(', ')} became ${now.join(', ')}`)
          if (new Set(now).size !== now.length) throw new Error(`twice: ${now.join(', ')}`)
          before = now
        }
        const active = (): boolean => transcript.active() !== undefined
        for (const [step, n] of steps) {
          if (step === 'say' && !active()) {
            apply(message(`m${++rows}`, 'user', [text('?')], ++sequence, ++turns))
            apply(turn(turns, 'running'))
          } else if (step === 'speak' && active() && !open) {
            open = { id: `m${++rows}`, content: [] }
            apply(message(open.id, 'assistant', [], null, turns))
          } else if (step === 'grow' && open) {
            const block = n > 1 ? use(`c${rows}.${open.content.length}`) : text('a')
            open.content.push(block)
            apply({
              event_type: 'message.block',
              message_id: open.id,
              content_index: open.content.length - 1,
              block,
            })
          } else if (step === 'ask' && open?.content.some(({ type }) => type === 'tool_use')) {
            const call = String(open.content.find(({ type }) => type === 'tool_use')?.['id'])
            apply(question(`q ${call}`, call, n > 1 ? 'pending' : 'completed'))
          } else if (step === 'settle' && open && open.content.length > 0) {
            apply(message(open.id, 'assistant', open.content, ++sequence, turns))
            apply(
              message(
                `m${++rows}`,
                'user',
                [{ type: 'tool_result', tool_use_id: 'x' }],
                ++sequence,
                turns,
              ),
            )
            open = undefined
          } else if (step === 'end' && active()) {
            apply(turn(turns, n > 0 ? 'completed' : 'cancelled'))
            open = undefined
          }
        }
      },
    ),
  )
})

t.test('a new entry is announced once', async (t) => {
  const transcript = new Transcript()
  const announcements = announcer(() => 'Deployer')
  const announced = (...frames: readonly TranscriptFrame[]): string => {
    for (const frame of frames) transcript.apply(frame)
    return announcements(entriesOf(transcript).entries)
  }
  t.equal(
    announced(
      message('m1', 'user', [text('hi')], 1),
      message('m2', 'assistant', [text('Hello.')], 2),
      turn(1, 'completed'),
    ),
    '',
    'earlier entries are not new',
  )
  t.equal(
    announced(
      message('m3', 'user', [text('go')], 3, 2),
      turn(2, 'running'),
      message('m4', 'assistant', [text('Half')], null, 2),
    ),
    '',
    'a message is announced when it is whole',
  )
  t.equal(announced(question('q', 'c', 'pending')), 'Question: May I q?')
  t.equal(
    announced(
      message(
        'm4',
        'assistant',
        [text('**Half**'), text('and `half`.\n\n- [x](https://x.example)')],
        4,
        2,
      ),
      turn(2, 'completed'),
    ),
    'Deployer: Half and half. x',
  )
  t.equal(announced(turn(2, 'completed')), '')
  t.equal(
    announced(message('m5', 'user', [text('break')], 5, 3), turn(3, 'failed')),
    'The turn failed.',
  )
  t.equal(
    announced(message('m6', 'assistant', [text('I ask.')], 6, 4), question('r', 'd', 'pending')),
    'Deployer: I ask. Question: May I r?',
    'what arrives together is announced together',
  )
})

t.test('a name does not change the writing direction of its announcement', async (t) => {
  const transcript = new Transcript()
  const announcements = announcer(() => 'מנהל')
  announcements([])
  transcript.apply(message('m1', 'assistant', [text('Two of three are done.')], 1))
  t.equal(announcements(entriesOf(transcript).entries), '\u2068מנהל\u2069: Two of three are done.')
})

t.test('times are local, with the date unless it is today', async (t) => {
  const now = Date.parse('2026-01-02T20:00:00Z')
  const berlin = { locale: 'en-GB', timeZone: 'Europe/Berlin' }
  const tokyo = { locale: 'en-GB', timeZone: 'Asia/Tokyo' }
  t.equal(shortTime('2026-01-02T03:04:05.006Z', now, berlin), '04:04')
  t.equal(shortTime('2026-01-01T22:59:59.999Z', now, berlin), '1 Jan 2026, 23:59')
  t.equal(shortTime('2026-01-02T03:04:05.006Z', now, tokyo), '2 Jan 2026, 12:04')
  t.match(exactTime('2026-01-02T03:04:05.006Z', berlin), /2 January 2026.*04:04:05/)
})

t.test('files are described by the members of their block', async (t) => {
  const block = { media_type: 'image/png', title: 'plan.png', size_bytes: 1_250_000 }
  const artifact = { type: 'artifact', artifact_id: 'art_1' }
  t.strictSame(describeFile({ type: 'image', ...block, source: artifact }, 'en'), {
    title: 'plan.png',
    size: '1.3 MB',
    isImage: true,
    source: { kind: 'artifact', id: 'art_1' },
  })
  t.match(describeFile({ type: 'document', ...block, source: artifact }), { isImage: false })
  t.match(
    describeFile({ type: 'image', source: artifact, media_type: 'image/svg+xml' }),
    { title: 'Image', size: '', isImage: false },
    'an image that may hold programs is not previewed',
  )
  const inline = (media_type: string) =>
    describeFile({ type: 'image', source: { type: 'base64', media_type, data: 'AA==' } }).source
  t.strictSame(inline('image/gif'), { kind: 'inline', url: 'data:image/gif;base64,AA==' })
  t.strictSame(inline('image/svg+xml'), { kind: 'none' })
  const linked = (url: string) => describeFile({ type: 'document', source: { type: 'url', url } })
  t.strictSame(linked('https://x.example/a').source, { kind: 'link', url: 'https://x.example/a' })
  t.strictSame(linked('javascript:alert(1)').source, { kind: 'none' })
  t.strictSame(
    [0, 1, 999, 102_400, 5_242_880].map((bytes) => sizeText(bytes, 'en')),
    ['0 byte', '1 byte', '999 byte', '102.4 kB', '5.2 MB'],
  )
})

t.test('an artifact in a result is described by its name and size', async (t) => {
  const reference = {
    type: 'artifact',
    id: 'art_1',
    name: 'reports/may.pdf',
    mime: 'application/pdf',
    size: 1500,
    sha256: 'ab'.repeat(32),
  } as const
  t.same(describeReference(reference, 'en'), {
    title: 'may.pdf',
    words: 'reports/may.pdf (1.5 kB)',
  })
  const { name: _, ...nameless } = reference
  t.same(describeReference(nameless, 'en'), { title: 'art_1', words: 'art_1 (1.5 kB)' })
})
