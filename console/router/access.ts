/** Routes of the pages for people, keys, secrets, audit, settings and the account. */
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
  {
    path: '/p/:project/audit',
    load: () => import('../pages/audit/project.tsx'),
    permission: 'access.manage',
    entry: { group: text.groupOperate, label: text.audit, icon: 'audit' },
  },
  {
    path: '/p/:project/settings',
    load: () => import('../pages/settings/settings.tsx'),
    permission: 'project.view',
    entry: { group: text.groupOperate, label: text.settings, icon: 'settings' },
  },
  {
    path: '/organization/keys',
    load: () => import('../pages/organization/keys.tsx'),
    permission: 'organization.admin',
    entry: { group: text.groupOrganization, label: text.organizationKeys, icon: 'keys' },
  },
  {
    path: '/organization/resolver',
    load: () => import('../pages/organization/resolver.tsx'),
    permission: 'organization.admin',
    entry: { group: text.groupOrganization, label: text.resolver, icon: 'resolver' },
  },
  {
    path: '/organization/audit',
    load: () => import('../pages/audit/organization.tsx'),
    permission: 'access.manage',
    entry: { group: text.groupOrganization, label: text.organizationAudit, icon: 'audit' },
  },
  { path: '/account', load: () => import('../pages/account/account.tsx') },
]
