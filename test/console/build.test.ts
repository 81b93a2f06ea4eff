/** The logic of the workflow, loop and event pages. */
import t from 'tap'
import { checkLoopWith, checkWorkflow } from '../../console/pages/build/checks.ts'
import { fingerprint, readDraft } from '../../console/pages/build/draft.ts'
import { jsonObject, objectText } from '../../console/pages/build/object.ts'
import { noOptions, readOptions } from '../../console/pages/build/options.ts'
import { matchesText } from '../../console/pages/build/search.ts'
import {
  changesOf,
  curlOfTrigger,
  definitionOf,
  isSigned,
  positionOf,
  standingOf,
} from '../../console/pages/loops/definition.ts'
import { loopTemplates } from '../../console/pages/loops/templates.ts'
import { triggerOf, writtenTrigger } from '../../console/pages/loops/trigger-fields.ts'
import { templates } from '../../console/pages/workflows/templates.ts'
import type { Loop, Trigger } from '../../protocol/loops/schema.ts'

t.test('templates have no fault', async (t) => {
  for (const { id, spec } of templates) t.strictSame(checkWorkflow(spec('usr_1')), [], id)
  for (const { id, definition } of loopTemplates)
    t.strictSame(checkLoopWith(undefined)(definition()), [], id)
})

t.test('faults of a definition have paths within it', async (t) => {
  const step = { kind: 'sleep', config: { duration: 'soon' } }
  const at = (faults: readonly { field: string }[]) => faults.map(({ field }) => field)
  t.strictSame(at(checkWorkflow({ steps: [step] })), ['steps[0].config.duration'])
  t.strictSame(at(checkWorkflow({ steps: [{ kind: 'sleep' }] })), ['steps[0].config'])
  t.strictSame(at(checkWorkflow([])), [''])
  const cron = { kind: 'schedule', config: { cron: 'x' } }
  t.strictSame(at(checkLoopWith(undefined)({ triggers: [cron] })), ['triggers[0].config.cron'])
})

t.test('a save of a loop sends changed fields, and empties removed ones', async (t) => {
  const before = { steps: [], event: { a: {} }, concurrency: 'skip', limits: {} } as const
  t.strictSame(changesOf(before as never, { steps: [], limits: { max_steps: 1 } }), {
    event: {},
    concurrency: 'allow',
    limits: { max_steps: 1 },
  })
  t.strictSame(changesOf(before as never, before as never), {})
  const loop = { id: 'l', name: 'n', status: 'active', steps: [], tags: {} } as unknown as Loop
  t.strictSame(definitionOf(loop), { steps: [] })
})

t.test('a trigger has the state of its key, or else that of its position', async (t) => {
  const [keyed, plain] = [{ kind: 'http', key: 'a' }, { kind: 'http' }] as const
  const standings = [{ id: 't1' }, { id: 't2', key: 'a' }]
  t.equal(standingOf(keyed, 0, standings)?.id, 't2')
  t.equal(standingOf(plain, 0, standings)?.id, 't1')
  t.equal(standingOf(plain, 1, standings), undefined, 'the state of another trigger')
  const settings = { http_triggers: { a: { signing_secret: '[redacted]' } } }
  t.strictSame(
    [keyed, plain].map((trigger, at) => isSigned({ settings } as unknown as Loop, trigger, at)),
    [true, false],
  )
  t.notMatch(curlOfTrigger('http://x/t', false, 'Baton'), /Signature/)
  t.match(curlOfTrigger('http://x/t', true, 'Baton'), /X-Service-Signature: sha256=\$SIGNATURE/)
  t.match(curlOfTrigger('http://x/t', true, 'Acme'), /X-Acme-Signature/)
})

t.test('a trigger is found in a newer version of its loop, and never another one', async (t) => {
  const keyed: Trigger = { kind: 'http', key: 'a' }
  const plain: Trigger = { kind: 'schedule', config: { interval: '1h' } }
  const added: Trigger = { kind: 'http', key: 'added' }
  t.equal(positionOf(keyed, 0, [added, { ...keyed, name: 'changed' }]), 1)
  t.equal(positionOf(keyed, 0, [added]), -1, 'another trigger is at its position')
  t.equal(positionOf(plain, 1, [plain, plain]), 1, 'of equal triggers, the one at its position')
  t.equal(positionOf(plain, 0, [added, { config: { interval: '1h' }, kind: 'schedule' }]), 1)
  t.equal(positionOf(plain, 0, [{ kind: 'schedule', config: { interval: '2h' } }]), -1)
})

t.test('the fields of a trigger describe it', async (t) => {
  const all: readonly Trigger[] = [
    { kind: 'http', key: 'a', config: { http_handle: 'h' } },
    { kind: 'http' },
    { kind: 'manual', name: 'By me' },
    { kind: 'schedule', enabled: false, config: { cron: '@daily', timezone: 'Europe/Berlin' } },
    { kind: 'schedule', config: { interval: '15m' }, max_concurrent_runs: 2 },
    { kind: 'event', config: { event_type: 'a.*', source_id: 's', condition: 'event.x > 1' } },
  ]
  for (const one of all) t.strictSame(triggerOf(writtenTrigger(one), one), one)
  const interval = { ...writtenTrigger(undefined), interval: '15m' }
  t.strictSame(triggerOf(interval, undefined), { kind: 'schedule', config: { interval: '15m' } })
})

t.test('the fields of a start form become its options', async (t) => {
  const words = { notWhole: 'whole', notObject: 'object' }
  t.strictSame(readOptions(noOptions, words), { options: {} })
  t.strictSame(
    readOptions(
      { ...noOptions, priority: ' -5 ', queue: ' q ', metadata: '{"a": 1}', external_id: 'x' },
      words,
    ),
    { options: { priority: -5, metadata: { a: 1 }, queue: 'q', external_id: 'x' } },
  )
  t.strictSame(readOptions({ ...noOptions, priority: '1.5', metadata: '[]' }, words), {
    faults: [
      { field: 'priority', message: 'whole' },
      { field: 'metadata', message: 'object' },
    ],
  })
  t.strictSame(['', '{}', '[1]', '{', 'null'].map(jsonObject), [
    {},
    {},
    undefined,
    undefined,
    undefined,
  ])
  t.strictSame([objectText(undefined), objectText({})], ['', ''])
})

t.test('truncated drafts are ignored', async (t) => {
  const draft = { base: '1', language: 'yaml', text: 'a: 1' } as const
  t.strictSame(readDraft(JSON.stringify(draft)), draft)
  for (const kept of ['', '{"base": "1", "te', '{}', '[]', 'null', '{"base": 1, "text": ""}'])
    t.equal(readDraft(kept), undefined, kept)
  t.not(fingerprint({ a: 1 }), fingerprint({ a: 2 }))
  t.ok(matchesText('NIGHT report', ['Report of the night', '']))
  t.notOk(matchesText('night x', ['Report of the night']))
})
