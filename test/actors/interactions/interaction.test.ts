/**
 * An interaction, command by command: creation, answers, reviews, expiry, cancellation and
 * notifications.
 */
import t from 'tap'
import { START, typesOf } from '../../support/given.ts'
import { answer, asked, by, record, review } from './story.ts'

const hour = new Date(START + 3_600_000).toISOString()

t.test('a new interaction stores its input and the data for a source event', async (t) => {
  const scene = asked({ context: { n: 1 }, expires_at: '2026-01-01T02:00:00+01:00' })
  t.strictSame(typesOf(scene), ['interaction.created'])
  t.match(record(scene), {
    id: 'interaction_1',
    status: 'pending',
    created_by: 'user_1',
    expires_at: hour,
    consumer: { kind: 'none' },
    resolution_policy: { type: 'any_of' },
  })
  t.strictSame(scene.events[0]?.['source'], {
    event: {
      interaction_id: 'interaction_1',
      kind: 'request_approval',
      status: 'pending',
      title: 'Go?',
      target_user_ids: ['ada'],
      consumer_kind: 'none',
      expires_at: hour,
      created_by: 'user_1',
      context: { n: 1 },
      spec: { mode: 'confirm' },
    },
    meta: { interaction_id: 'interaction_1', kind: 'request_approval', target_user_ids: ['ada'] },
    depth: 0,
  })
  t.strictSame(scene.tells, [])
  t.strictSame(
    typesOf(
      scene.when('interaction.create', {
        kind: 'assign_work',
        title: 'other',
        target_user_ids: ['x'],
      }),
    ),
    [],
    'a creation that comes again changes nothing',
  )
  t.match(asked({ expires_at: new Date(START).toISOString() }).refused, {
    details: { fields: [{ field: 'expires_at' }] },
  })
  t.match(asked({ tags: { 'service:owner': 'me' } }).refused, {
    details: { fields: [{ field: 'tags.service:owner' }] },
  })
  t.match(
    asked({ target_user_ids: ['user_1'], resolution_policy: { type: 'any_of', review: {} } })
      .refused,
    { details: { fields: [{ field: 'resolution_policy.review.reviewer_user_ids' }] } },
  )
})

t.test('references are URLs or entities of this service', async (t) => {
  const of = (kind: string) => ({ kind, entity_type: 'loop', entity_id: 'loop_1' })
  t.match(
    record(
      asked({
        subject: of('service_entity'),
        references: [of('service_entity'), { kind: 'external_url', url: 'https://x.test' }],
      }),
    ),
    { subject: of('service_entity'), references: [{}, {}] },
  )
  t.match(
    asked({ subject: of('foo_entity'), references: [of('service_entity'), of('other_entity')] })
      .refused,
    {
      details: {
        fields: [{ field: 'subject.kind', actual: 'foo_entity' }, { field: 'references[1].kind' }],
      },
    },
  )
})

t.test('the first answer that satisfies the policy freezes the outcome', async (t) => {
  const done = answer(asked(), 'ada', false, { comment: 'no' })
  t.strictSame(typesOf(done), ['interaction.responded', 'interaction.resolved'])
  t.match(record(done), {
    status: 'completed',
    outcome: false,
    responder: { user_id: 'ada' },
    resolving_response_id: 'iresp_1',
    resolved_by: 'any_of',
    lifecycle: [{}, { action: 'resolved', actor_id: 'ada' }],
  })
  t.strictSame(done.events[1]?.['source'], {
    event: {
      interaction_id: 'interaction_1',
      kind: 'request_approval',
      status: 'completed',
      consumer_kind: 'none',
      responder_id: 'ada',
      resolving_response_id: 'iresp_1',
      outcome: false,
      comment: 'no',
      responder: { user_id: 'ada' },
      resolved_by: 'any_of',
    },
    meta: {
      interaction_id: 'interaction_1',
      kind: 'request_approval',
      status: 'completed',
      consumer_kind: 'none',
      responder_id: 'ada',
      resolving_response_id: 'iresp_1',
    },
    depth: 0,
    record: record(done),
  })
  t.match(done.effects, [
    {
      tell: {
        to: { kind: 'events', id: 'prj_1' },
        name: 'source.publish',
        input: {
          event_type: 'interaction.resolved',
          source_kind: 'interaction',
          source_id: 'interaction_1',
          depth: 0,
        },
      },
    },
  ])
  t.match(answer(done, 'ada', false).refused, {
    refused: 'conflict',
    details: { status: 'completed' },
  })
  t.strictSame(
    record(answer(asked({ spec: undefined }), 'ada', null)).outcome,
    null,
    'null is an answer where none is described',
  )
})

t.test('the size of an interaction and the number of its review rounds are limited', async (t) => {
  const people = ['ada', 'bo', 'cy', 'di', 'ed']
  let scene = asked({ target_user_ids: people, resolution_policy: 'all_of', spec: undefined })
  for (const person of people.slice(0, 4)) scene = answer(scene, person, 'x'.repeat(250_000))
  t.match(answer(scene, 'ed', 'x'.repeat(250_000)).refused, {
    refused: 'conflict',
    details: { limit: 1024 * 1024 },
  })
  t.match(
    record(answer(scene, 'ed', 'see the file')),
    { status: 'completed' },
    'a shorter answer is accepted',
  )
  let rounds = asked({
    resolution_policy: { type: 'any_of', review: { reviewer_user_ids: ['rita'] } },
  })
  for (let round = 1; round < 100; round++)
    rounds = review(answer(rounds, 'ada'), 'rita', 'request_changes')
  const last = answer(rounds, 'ada')
  t.match(review(last, 'rita', 'request_changes').refused, {
    refused: 'conflict',
    details: { limit: 100 },
  })
  t.match(record(review(last, 'rita', 'accept')), { status: 'completed' })
})

t.test('targets and holders of a target role can answer', async (t) => {
  const scene = asked({ target_user_ids: ['ada', 'role:Editor'] })
  t.match(answer(scene, 'bo').refused, { refused: 'forbidden' })
  t.match(answer(scene, 'bo', true, { roles: ['Viewer', 'role_viewer'] }).refused, {
    refused: 'forbidden',
  })
  t.equal(record(answer(scene, 'bo', true, { roles: ['Editor'] })).status, 'completed')
  t.match(answer(scene, 'ada', 'x').refused, { details: { fields: [{ field: 'value' }] } })
})

t.test('all_of waits for all targets, a quorum for enough; each person counts once', async (t) => {
  const all = asked({ target_user_ids: ['ada', 'bo'], resolution_policy: 'all_of' })
  const one = answer(all, 'bo')
  t.strictSame(typesOf(one), ['interaction.responded'])
  t.strictSame(
    [answer(one, 'bo').events, answer(one, 'bo').reply],
    [[], record(one)],
    'the same answer again',
  )
  t.match(answer(one, 'bo', false).refused, { refused: 'conflict' })
  t.match(record(answer(one, 'ada')), {
    outcome: true,
    resolved_by: 'all_of',
    responder: { user_id: 'ada' },
  })
  t.match(record(answer(one, 'ada', false)), { outcome: false })
  const quorum = asked({
    kind: 'request_information',
    spec: { mode: 'input' },
    target_user_ids: ['a', 'b', 'c'],
    resolution_policy: { type: 'quorum', threshold: 2 },
  })
  t.strictSame(record(answer(answer(quorum, 'c', 'x'), 'a', 'y')).outcome, [
    { responder_user_id: 'c', value: 'x' },
    { responder_user_id: 'a', value: 'y' },
  ])
})

t.test(
  'a review keeps the consumer waiting; another round starts from the beginning',
  async (t) => {
    const scene = asked({
      kind: 'request_review',
      spec: { mode: 'input' },
      target_user_ids: ['ada', 'bo'],
      resolution_policy: { type: 'all_of', review: { reviewer_user_ids: ['rita', 'ada'] } },
    })
    const submitted = answer(answer(scene, 'ada', 'x'), 'bo', 'y')
    t.strictSame(typesOf(submitted), ['interaction.responded', 'interaction.submitted'])
    t.match(record(submitted), {
      status: 'in_review',
      responder: { user_id: 'bo' },
      outcome: undefined,
      resolving_response_id: undefined,
    })
    t.match(review(submitted, 'ada', 'accept').refused, { refused: 'forbidden' }, 'her own answer')
    t.match(
      review(submitted, 'user_1', 'accept').refused,
      { refused: 'forbidden' },
      'reviewers are named, so the creator is none',
    )
    t.match(review(scene, 'rita', 'accept').refused, {
      refused: 'conflict',
      details: { status: 'pending' },
    })
    const again = review(submitted, 'rita', 'request_changes', 'more')
    t.match(record(again), {
      status: 'pending',
      review_round: 2,
      review_feedback: 'more',
      reviewer: { user_id: 'rita' },
      submitted_at: undefined,
      responder: undefined,
    })
    const half = answer(again, 'ada', 'x2')
    t.equal(record(half).status, 'pending', 'answers of the first round do not count')
    const done = review(answer(half, 'bo', 'y2'), 'rita', 'accept', 'fine')
    t.match(record(done), {
      status: 'completed',
      resolved_by: 'review_accept',
      outcome: [{ value: 'x2' }, { value: 'y2' }],
      responses: [{ value: 'x' }, { value: 'y' }, { attempt: 2 }, { attempt: 2 }],
      resolving_response_id: 'iresp_4',
    })
    const byRole = asked({
      resolution_policy: { type: 'any_of', review: { reviewer_user_ids: ['role:Editor'] } },
    })
    const reviewed = (roles: string[]) =>
      answer(byRole, 'ada').when('interaction.review', { action: 'accept', roles }, by('bo'))
    t.match(
      [reviewed(['Viewer']).refused, record(reviewed(['Editor'])).status],
      [{ refused: 'forbidden' }, 'completed'],
      'holders of a reviewer role can review',
    )
    t.match(
      answer(byRole, 'ada').when(
        'interaction.review',
        { action: 'accept', roles: ['Editor'] },
        by('ada'),
      ).refused,
      { refused: 'forbidden' },
    )
    const byCreator = answer(asked({ resolution_policy: { type: 'any_of', review: {} } }), 'ada')
    t.equal(
      record(review(byCreator, 'user_1', 'accept')).status,
      'completed',
      'without named reviewers, the creator reviews',
    )
  },
)

t.test('an interaction expires on time, even in review, and takes no later answer', async (t) => {
  const scene = asked({
    expires_at: hour,
    resolution_policy: { type: 'any_of', review: { reviewer_user_ids: ['rita'] } },
  })
  t.equal(scene.deadline(), START + 3_600_000)
  t.strictSame(scene.when('wake', {}, { at: START + 3_599_999 }).events, [], 'early')
  for (const open of [scene, answer(scene, 'ada')]) {
    const over = open.when(
      'wake',
      {},
      { at: START + 3_600_000, principal: { type: 'system', id: 'system' } },
    )
    t.match(record(over), {
      status: 'expired',
      outcome: undefined,
      resolving_response_id: undefined,
    })
    t.strictSame(record(over).lifecycle.at(-1), {
      at: hour,
      status: 'expired',
      action: 'expired',
    })
    t.match(over.events[0]?.['source'], { meta: { status: 'expired', responder_id: undefined } })
    t.strictSame([over.deadline(), over.when('wake').events], [undefined, []])
  }
  t.match(
    scene.when(
      'interaction.respond',
      { value: true, roles: [] },
      { at: START + 3_600_000, ...by('ada') },
    ).refused,
    { refused: 'conflict', details: { status: 'expired' } },
    'before the timer came',
  )
  t.match(
    scene.when('interaction.cancel', {}, { at: START + 3_600_000 }).refused,
    { refused: 'conflict', details: { status: 'expired' } },
    'and it cannot be cancelled any more',
  )
})

t.test('cancelling', async (t) => {
  const gone = asked().when('interaction.cancel', { reason: 'moot' })
  t.match(record(gone), { status: 'cancelled', cancel_reason: 'moot', completed_at: /Z/ })
  t.strictSame(gone.when('interaction.cancel').events, [])
  t.match(answer(asked(), 'ada').when('interaction.cancel').refused, {
    refused: 'conflict',
    details: { status: 'completed' },
  })
  t.match(
    asked().when('interaction.cancel', {}, { principal: { type: 'agent', id: 'agt_1' } }).refused,
    { refused: 'forbidden' },
  )
  t.match(answer(gone, 'ada').refused, { refused: 'conflict' })
})

t.test('only an ended interaction can be deleted, and then it is not found', async (t) => {
  t.match(asked().when('interaction.delete').refused, { refused: 'bad_request' })
  const gone = answer(asked(), 'ada').when('interaction.delete')
  t.strictSame(typesOf(gone), ['interaction.deleted'])
  for (const name of [
    'interaction.delete',
    'interaction.cancel',
    'interaction.respond',
    'interaction.review',
    'interaction.link',
  ])
    t.match(gone.when(name, { roles: [] }).refused, { refused: 'not_found' }, name)
  t.equal(gone.ask('get'), null)
})

t.test('links are for people who can still answer in the current round', async (t) => {
  const scene = asked({ target_user_ids: ['ada', 'bo', 'role:Editor'] })
  t.match(scene.when('interaction.link', { round: 1 }), {
    events: [{ type: 'interaction.linked', targets: ['ada', 'bo'], round: 1 }],
    reply: { items: [] },
  })
  t.match(scene.when('interaction.link', { round: 2 }).refused, { refused: 'conflict' })
  t.match(scene.when('interaction.link', { round: 1, target_user_ids: ['bo', 'cleo'] }).refused, {
    details: { fields: [{ field: 'target_user_ids[1]' }] },
  })
  t.match(answer(scene, 'ada').when('interaction.link', { round: 1 }).refused, {
    refused: 'conflict',
  })
  t.match(answer(scene, 'ada', true, { link: { round: 2 } }).refused, { refused: 'conflict' })
  t.equal(record(answer(scene, 'ada', true, { link: { round: 1 } })).status, 'completed')
})

t.test(
  'a waiting run learns of each answer and once of the end, unless it withdrew the question',
  async (t) => {
    const scene = asked({
      target_user_ids: ['ada', 'bo'],
      resolution_policy: 'all_of',
      run_id: 'run_1',
      signal_name: 'done',
    })
    t.match(scene.tells, [
      {
        to: { kind: 'run', id: 'run_1' },
        name: 'interaction.opened',
        input: {
          interaction_id: 'interaction_1',
          protocol: 'request_approval',
          targets: ['ada', 'bo'],
        },
      },
    ])
    const one = answer(scene, 'ada')
    t.match(one.tells, [
      { name: 'interaction.responded', input: { response: true, responder: { user_id: 'ada' } } },
    ])
    const both = answer(one, 'bo', true, { comment: 'ok' })
    t.match(both.tells, [
      { name: 'interaction.responded' },
      {
        name: 'interaction.settled',
        input: {
          signal_name: 'done',
          status: 'completed',
          value: true,
          responder: { user_id: 'bo' },
          comment: 'ok',
        },
      },
    ])
    t.match(one.when('interaction.cancel', { reason: 'moot' }).tells, [
      { name: 'interaction.settled', input: { status: 'cancelled', reason: 'moot' } },
    ])
    const withdrawn = one.when('interaction.withdraw', { reason: 'the run has ended' })
    t.strictSame([record(withdrawn).status, withdrawn.tells], ['cancelled', []])
    t.strictSame(both.when('interaction.withdraw').events, [])
  },
)

t.test("the final event of an interaction contains its HTTP subscriber's delivery", async (t) => {
  const http_subscriber = { callback_url: 'https://example.org/x', secret_ref: 'hook:2' }
  const scene = asked({ consumer: { kind: 'http_subscriber', http_subscriber } })
  t.strictSame(answer(scene, 'ada').events[1]?.['dispatch'], {
    delivery_id: 'whd_1',
    ...http_subscriber,
    body: {
      interaction_id: 'interaction_1',
      kind: 'request_approval',
      status: 'completed',
      outcome: true,
      value: true,
      comment: null,
      responder: { user_id: 'ada' },
      resolved_by: 'any_of',
    },
  })
  t.match(scene.when('interaction.cancel').events[0]?.['dispatch'], {
    delivery_id: /^whd_/,
    body: { status: 'cancelled', value: null, responder: null },
  })
})
