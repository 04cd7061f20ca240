/** What every event of a reservation says, in SQL over its row. The first version is that it is due. */
export const reservationEventSql = {
  aggregateKey: "id::text",
  fields: {
    user_id: "user_id",
    reservation_id: "id",
    point_amount: "point_amount::text",
    execute_at: "execute_at",
  },
};
