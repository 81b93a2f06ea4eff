/** The audit log of the organization. */
import { AuditLog } from './log.tsx'

export default function OrganizationAuditPage() {
  return <AuditLog />
}
