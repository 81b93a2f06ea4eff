/** Opens the configured ways of notification: e-mail and webhook. */
import type { World } from '../../gateway/ports.ts'
import type { Config } from '../config.ts'
import type { HostDeps } from '../host/deps.ts'
import { createEmailNotifier } from './email.ts'
import { createNotifier } from './notifier.ts'
import { checkTargets } from './targets.ts'
import { createWebhookNotifier } from './webhook.ts'

interface Notifications {
  readonly notify: NonNullable<HostDeps['notify']>
  close(): void
}

/** Opens the configured channels. Without a channel, the targets of questions are still checked. */
export async function openNotifications(
  { notify: hook, email, brand, public_url }: Config,
  world: World,
): Promise<Notifications> {
  const { log } = world
  const seal: World['seal'] = (text) => world.seal(text)
  const reach = (project: string, targets: readonly string[]) =>
    world.ask({ project, kind: 'project', id: project }, 'reach', { targets })
  const wanted = (project: string) => {
    const organization = world.organization()
    return world.ask(
      { project: organization, kind: 'organization', id: organization },
      'email_notifications',
      { project },
    )
  }
  const mail =
    email &&
    (await createEmailNotifier({
      ...email,
      seal,
      reach,
      wanted,
      log,
      ...(public_url !== undefined && { public_url }),
    }))
  const channels = [
    ...(hook
      ? [
          createWebhookNotifier({
            ...hook,
            brand,
            seal,
            log,
            now: () => world.now(),
            public_url: world.settings.public_url ?? '',
          }),
        ]
      : []),
    ...(mail ? [mail.channel] : []),
  ]
  const tell = createNotifier(channels)
  return {
    notify: async (notice) => {
      const targets = await checkTargets(world, notice)
      return targets === 'valid' ? tell(notice) : targets === 'invalid'
    },
    close: () => mail?.close(),
  }
}
