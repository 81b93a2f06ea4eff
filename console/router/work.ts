/** The pages of the inbox and of channels. */
import { shellText as text } from '../shell/text.ts'
import type { Route } from './route.ts'

export const workRoutes: readonly Route[] = [
  {
    path: '/p/:project/inbox',
    load: () => import('../pages/inbox/inbox.tsx'),
    permission: 'project.view',
    entry: { group: text.groupWork, label: text.inbox, icon: 'inbox', keys: 'g i' },
  },
]
