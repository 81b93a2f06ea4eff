/**
 * The stock worker in a container that a real engine (Podman) runs, with git and the files of an
 * environment.
 */
import t, { type Test } from 'tap'
import { IMAGE, type Podman, skip, startPodman } from '../../nodes/support/podman.ts'
import { type Service, service } from '../../support/service.ts'
import { bash } from '../support/bash.ts'
import { until } from '../support/given.ts'

async function serviceOn(t: Test, podman: Podman): Promise<Service> {
  const s = await service({
    BATON_ROLES: 'gateway,shards,views,executor,hosts',
    BATON_PROVIDERS: 'docker',
    BATON_DOCKER_SOCKET: podman.socket,
    BATON_DOCKER_IMAGE: IMAGE,
    BATON_DOCKER_NETWORK: 'host',
  })
  t.teardown(async () => {
    await s.stop()
    await podman.stop()
  })
  return s
}
t.test('an environment is created, used, woken again and destroyed', { skip }, async (t) => {
  const podman = await startPodman()
  const s = await serviceOn(t, podman)
  const is = (environment_id: string, member: string, wanted: string) =>
    until(
      () => s.ok('environment.get', { environment_id, include: 'worker_state,place' }),
      (one) => one[member] === wanted,
    )

  const made = await s.ok('environment.create', { name: 'desk' })
  const id = made['id'] as unknown as string
  t.match(await is(id, 'status', 'ready'), { provider: 'docker', place: /^docker\/[0-9a-f]{24}$/ })
  await s.ok('environment.start_worker', { environment_id: id, keep_warm: '0s' })
  t.equal(
    await bash(s, id, 'id -u; pwd; git init -q one 2>/dev/null; ls'),
    '1000\n/environment/workspace\none\n',
  )
  await is(id, 'worker_state', 'stopped')
  t.equal(await bash(s, id, 'ls'), 'one\n', 'a job wakes it, and files are kept')
  const logs = await s.ok('environment.worker_logs', { environment_id: id, log_name: 'worker' })
  t.match(logs['content'], /registered/)
  await s.ok('environment.delete', { environment_id: id })
  t.match(await is(id, 'status', 'destroyed'), { cleanup_status: 'succeeded' })
  t.equal(podman.run('ps', '--all', '--quiet'), '')
  t.notMatch(podman.run('volume', 'ls'), id)
})
