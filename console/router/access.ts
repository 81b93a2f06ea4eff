/** The pages of people, keys, secrets, audit, settings and the account. */
import { shellText as text } from '../shell/text.ts'
import type { Route } from './route.ts'

export const accessRoutes: readonly Route[] = [
  {
    path: '/p/:project/people',
    load: () => import('../pages/access/people.tsx'),
    permission: 'project.view',
    entry: { group: text.groupOperate, label: text.people, icon: 'people', keys: 'g p' },
  },
  {
    path: '/p/:project/secrets',
    load: () => import('../pages/access/secrets.tsx'),
    permission: 'project.admin',
    entry: { group: text.groupOperate, label: text.secrets, icon: 'secrets' },
  },
  { path: '/account', load: () => import('../pages/account/account.tsx') },
]
