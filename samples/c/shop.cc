/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/* A shop that sells something each tenth of a second: shop-c++ [TIMES]. */
#include "shop.h"
#include <array>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

class Shop {
public:
	void sell(int price, const std::string &what)
	{
		SHOP_SOLD(price, what.c_str());
		if (SHOP_RECEIPT_ENABLED()) {
			auto text = "receipt " + std::to_string(++receipts) + ": " + what + " for " + std::to_string(price);
			SHOP_RECEIPT(text.c_str());
		}
	}
	int receipts = 0;
};

int main(int argc, char **argv)
{
	const std::array<std::string, 3> fruits = { "apple", "pear", "plum" };
	int times = argc > 1 ? std::stoi(argv[1]) : 10;
	Shop shop;

	for (int n = 0; n < times; n++) {
		shop.sell(10 + n, fruits[n % 3]);
		std::this_thread::sleep_for(std::chrono::milliseconds(100));
	}
	std::cout << "receipts: " << shop.receipts << "\n";
}
