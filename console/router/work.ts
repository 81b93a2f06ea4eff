/** Routes of the pages for the inbox and channels. */
import { shellText as text } from '../shell/text.ts'
import type { Route } from './route.ts'

export const workRoutes: readonly Route[] = [
  {
    path: '/p/:project/inbox',
    load: () => import('../pages/inbox/inbox.tsx'),
    permission: 'project.view',
    entry: { group: text.groupWork, label: text.inbox, icon: 'inbox', keys: 'g i' },
  },
  {
    path: '/p/:project/channels',
    load: () => import('../pages/channels/channels.tsx'),
    permission: 'project.view',
    entry: { group: text.groupWork, label: text.channels, icon: 'channels', keys: 'g c' },
  },
  {
    path: '/p/:project/channels/:id',
    load: () => import('../pages/channels/channels.tsx'),
    permission: 'project.view',
  },
]
