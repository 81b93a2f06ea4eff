/** The handle of an HTTP trigger: when the reservation of a refused request ends. */
import t from 'tap'
import { triggerHandle } from '../../../actors/loops/http-trigger/handle.ts'
import { given } from '../../support/given.ts'

t.test('a refused request ends its reservation, unless another may use it', async (t) => {
  const reserve = { handle: 'h', project: 'p', loop_id: 'l1' }
  const scene = given<object>(triggerHandle).when('handle.reserve', {
    ...reserve,
    reservation: 'a',
  })
  const free = { loop_id: 'l1', reservation: 'a' }
  t.strictSame(scene.when('handle.free', { ...free, reservation: 'b' }).events, [])
  t.strictSame(scene.when('handle.free', free).state, {})
  const shared = scene.when('handle.reserve', { ...reserve, reservation: 'b' })
  t.strictSame(shared.when('handle.free', free).events, [])
  t.strictSame(shared.when('handle.free', { ...free, reservation: 'b' }).events, [])
  const bound = scene.when('handle.bind', { ...reserve, trigger_id: 't1' })
  t.strictSame(bound.when('handle.free', free).events, [])
})
