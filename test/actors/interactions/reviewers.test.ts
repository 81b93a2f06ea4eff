/** Answers of reviewers, who cannot review their own answer. */
import t from 'tap'
import { linkableTargets } from '../../../protocol/interactions/resolve.ts'
import { type After, answer, asked, record } from './story.ts'

const reviewedBy = (...reviewer_user_ids: string[]) => ({
  type: 'any_of',
  review: { reviewer_user_ids },
})
const statusOf = (scene: After) => record(scene).status

t.test('an answer that would leave no reviewer is refused', async (t) => {
  const one = asked({
    target_user_ids: ['ada', 'bo'],
    resolution_policy: reviewedBy('ada'),
  })
  t.match(answer(one, 'ada').refused, { refused: 'forbidden' }, 'ada could not review it')
  t.equal(statusOf(answer(one, 'bo')), 'in_review')
  t.strictSame(linkableTargets(record(one)), ['bo'])
  const two = asked({
    target_user_ids: ['role:Operator'],
    resolution_policy: {
      type: 'quorum',
      threshold: 2,
      review: { reviewer_user_ids: ['ada', 'bo'] },
    },
  })
  const roles = { roles: ['Operator'] }
  const half = answer(two, 'ada', true, roles)
  t.match(answer(half, 'bo', true, roles).refused, { refused: 'forbidden' })
  t.equal(statusOf(answer(half, 'cy', true, roles)), 'in_review')
  const ofCreator = { target_user_ids: ['role:Operator'], resolution_policy: reviewedBy() }
  t.match(answer(asked(ofCreator), 'user_1', true, roles).refused, { refused: 'forbidden' })
  const byRole = asked({ ...ofCreator, resolution_policy: reviewedBy('role:Operator') })
  t.equal(statusOf(answer(byRole, 'ada', true, roles)), 'in_review')
})
